import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))

/** Imports an entry point in a process in which the packages of LangChain can't be found. */
async function importWithoutLangChain(entry: string): Promise<string> {
  const hook = `export const resolve = (name, context, next) => {
    if (name.startsWith('@langchain/')) throw new Error('asked for ' + name)
    return next(name, context)
  }`
  const program = `
    import { register } from 'node:module'
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}))
    await import('${entry}').then((loaded) => console.log(Object.keys(loaded).length > 0), ({ message }) => console.log(message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: root })
  return stdout.trim()
}

describe('the packages of LangChain', () => {
  it.each(['holdfast', 'holdfast/testing'])('are not loaded by %s', async (entry) => {
    expect(await importWithoutLangChain(entry)).toBe('true')
  })

  it('are loaded by holdfast/langgraph', async () => {
    expect(await importWithoutLangChain('holdfast/langgraph')).toMatch(/^asked for @langchain\//)
  })
})
