// @ts-check

/**
 * A model of ours that answers at once: what a bench has it say to a prompt.
 * @param {(prompt: readonly { role: string, content: any }[]) => { type: string, [field: string]: unknown }[]} say
 * @returns {any}
 */
export function scriptedModel(say) {
  return {
    specificationVersion: 'v3',
    provider: 'bench',
    modelId: 'none',
    supportedUrls: {},
    /** @param {{ prompt: { role: string, content: any }[] }} options */
    async doGenerate({ prompt }) {
      const content = say(prompt)
      const isCall = content.at(-1)?.type === 'tool-call'
      const finishReason = { unified: isCall ? 'tool-calls' : 'stop', raw: undefined }
      const usage = { inputTokens: { total: 10 }, outputTokens: { total: 10 } }
      return { content, finishReason, usage, warnings: [] }
    },
    async doStream() {
      throw new Error('not used')
    },
  }
}
