import { flow } from '#src/runtime/program/flow.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const options = { name: 'order', version: '1.0.0' }

describe('a flow', () => {
  it('is a plan with its function, its schemas and what its steps default to', async () => {
    const input = z.object({ id: z.coerce.number() })
    const output = z.string()
    const run = async (): Promise<string> => 'done'
    const { plan } = flow(
      { ...options, compatibleWith: '>=0.9', retry: { attempts: 2 }, timeoutMs: 5, input, output },
      run,
    )
    expect(plan).toMatchObject({ kind: 'flow', name: 'order', version: '1.0.0', compatibleWith: '>=0.9', run })
    expect(plan.policy).toStrictEqual({ retry: { attempts: 2 }, timeoutMs: 5 })
    expect(plan.inputSchema).toBe(input)
    expect(plan.outputSchema).toBe(output)
  })

  it('checks input and output by its schemas, with the path to what does not fit', async () => {
    const { plan } = flow({ ...options, input: z.object({ id: z.coerce.number() }), output: z.string() }, () => 'done')
    expect(await plan.checkInput({ id: '5' })).toStrictEqual({ id: 5 })
    await expect(plan.checkInput({ id: 'x' })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path: 'input.id' },
    })
    await expect(plan.checkInput(undefined)).rejects.toMatchObject({ data: { path: 'input' } })
    expect(await plan.checkOutput('done')).toBe('done')
    await expect(plan.checkOutput(5)).rejects.toMatchObject({ data: { path: 'output' } })
  })

  it('takes anything without schemas', async () => {
    const { plan } = flow(options, () => undefined)
    expect(await plan.checkInput(5)).toBe(5)
    expect(await plan.checkOutput(undefined)).toBeUndefined()
    expect(plan).not.toHaveProperty('inputSchema')
  })

  it('is refused with a bad name, version, range, policy or schema, or nothing to run', () => {
    const refused = (field: string) =>
      expect.objectContaining({ code: 'invalid-program', data: expect.objectContaining({ field }) })
    expect(() => flow({ ...options, name: '' }, () => 1)).toThrow(refused('name'))
    expect(() => flow({ ...options, version: '1' }, () => 1)).toThrow(refused('version'))
    expect(() => flow({ ...options, compatibleWith: '?' }, () => 1)).toThrow(refused('compatibleWith'))
    expect(() => flow({ ...options, timeoutMs: 0 }, () => 1)).toThrow(refused('flow "order".timeoutMs'))
    expect(() => flow({ ...options, output: {} as never }, () => 1)).toThrow(refused('output'))
    expect(() => flow(options, undefined as never)).toThrow(refused('run'))
  })
})
