import type { LanguageModel } from 'holdfast'
import { scriptedModel } from './scripted-model.ts'

// The one line to change. For a real model, any OpenAI-compatible address:
//   import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
//   export const model = createOpenAICompatible({ name: 'mine', baseURL: 'https://…/v1', apiKey: process.env['MODEL_KEY'], includeUsage: true })('model-name')
// or any model of the AI SDK, such as anthropic('…') of @ai-sdk/anthropic.
export const model: LanguageModel = await scriptedModel()
