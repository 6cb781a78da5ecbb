import { type ModelServer, type ModelServerOptions, startModelServer } from 'holdfast/testing'
import { afterEach, describe, expect, it } from 'vitest'

let server: ModelServer | undefined
/** How long to wait for what is about to happen, on a machine that may be busy. */
const soon = { timeout: 600_000 }

async function start(options: ModelServerOptions): Promise<ModelServer> {
  server = await startModelServer(options)
  return server
}

afterEach(async () => {
  await server?.close()
  server = undefined
})

function ask(body: object = {}, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${server?.url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...body }),
  })
}

async function readEvents(response: Response): Promise<any[]> {
  const text = await response.text()
  const lines = text.split('\n\n').filter((line) => line !== '')
  expect(lines.at(-1)).toBe('data: [DONE]')
  return lines.slice(0, -1).map((line) => JSON.parse(line.slice('data: '.length)))
}

describe('the model server', () => {
  it('answers with text, in the shape of a chat completion', async () => {
    await start({ reply: ['Hello there.'] })
    const response = await ask()
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await response.json()).toMatchObject({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Hello there.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11 },
    })
  })

  it('streams text, reasoning and tool calls in pieces, and usage when asked for it', async () => {
    const text = '  Hello,  wide world. '
    const reply = {
      text,
      reasoning: 'Think first.',
      toolCalls: [{ name: 'a', arguments: { orderId: 'ORD-2024-8847' } }, { name: 'b' }],
    }
    await start({ reply: () => reply })
    const events = await readEvents(await ask({ stream: true, stream_options: { include_usage: true } }))
    const deltas = events.flatMap((event) => event.choices.map((choice: any) => choice.delta))
    const joined = (field: string) => deltas.map((delta) => delta[field] ?? '').join('')
    expect(joined('content')).toBe(text)
    expect(joined('reasoning_content')).toBe('Think first.')
    const calls = deltas.flatMap((delta) => delta.tool_calls ?? [])
    const argumentsOf = (index: number) =>
      calls
        .filter((call) => call.index === index)
        .map((call) => call.function.arguments)
        .join('')
    expect(JSON.parse(argumentsOf(0))).toEqual({ orderId: 'ORD-2024-8847' })
    expect(argumentsOf(1)).toBe('{}')
    expect(calls.filter((call) => call.id !== undefined).map((call) => call.function.name)).toEqual(['a', 'b'])
    expect(events.at(-2).choices[0].finish_reason).toBe('tool_calls')
    expect(events.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 8 } })
    const without = await readEvents(await ask({ stream: true }))
    expect(without.every((event) => event.usage === undefined)).toBe(true)
  })

  it('asks the handler, which sees the request, and counts tokens as told', async () => {
    await start({
      reply: async ({ messages, tools, model, stream, index }) => ({
        text: `${model} ${stream} ${index} ${messages.length} ${tools.length}`,
        usage: { input: 100, output: 7, cachedInput: 50, reasoning: 3 },
      }),
    })
    await ask()
    const body = (await (await ask({ tools: [{ type: 'function' }] })).json()) as any
    expect(body.choices[0].message.content).toBe('m false 1 1 1')
    expect(body.usage).toEqual({
      prompt_tokens: 100,
      completion_tokens: 7,
      total_tokens: 107,
      prompt_tokens_details: { cached_tokens: 50 },
      completion_tokens_details: { reasoning_tokens: 3 },
    })
  })

  it('answers errors with their headers, and says when its script is over or its handler threw', async () => {
    await start({
      reply: [
        { error: { status: 429, headers: { 'retry-after': '2' }, message: 'slow', code: 'rate_limit_exceeded' } },
        { error: { status: 503, body: '<html>' } },
      ],
    })
    const limited = await ask()
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '2'])
    expect(await limited.json()).toEqual({
      error: { message: 'slow', type: 'server_error', param: null, code: 'rate_limit_exceeded' },
    })
    expect(await (await ask()).text()).toBe('<html>')
    const over = await ask()
    expect([over.status, await over.json()]).toMatchObject([400, { error: { code: 'script_over' } }])
    await server?.close()
    await start({
      reply: () => {
        throw new Error('a bug in the test')
      },
    })
    const thrown = await ask()
    expect([thrown.status, await thrown.json()]).toMatchObject([
      400,
      { error: { message: 'The reply handler threw: a bug in the test' } },
    ])
    expect(server?.counters).toMatchObject({ requests: 1, errors: 1 })
  })

  it('refuses other keys, other paths and what is no request', async () => {
    await start({ reply: () => 'x', apiKey: 'sk-1', models: ['a', 'b'] })
    expect((await ask()).status).toBe(401)
    const authorization = 'Bearer sk-1'
    expect((await ask({}, { authorization })).status).toBe(200)
    expect((await ask({ messages: 'x' }, { authorization })).status).toBe(400)
    expect((await fetch(`${server?.url}/embeddings`, { headers: { authorization } })).status).toBe(404)
    const models = (await (await fetch(`${server?.url}/models`, { headers: { authorization } })).json()) as any
    expect(models.data.map(({ id }: any) => id)).toEqual(['a', 'b'])
    expect(JSON.stringify(server?.requests)).not.toContain('sk-1')
  })

  it('has a window, and answers as OpenAI does when it is passed', async () => {
    await start({ reply: () => 'x', windowTokens: 100 })
    expect((await ask()).status).toBe(200)
    const long = await ask({ messages: [{ role: 'user', content: 'x'.repeat(500) }] })
    expect([long.status, await long.json()]).toMatchObject([400, { error: { code: 'context_length_exceeded' } }])
  })

  it.each([true, false])('drops connections before and in the middle of a reply (stream: %s)', async (stream) => {
    await start({
      reply: [
        { text: 'a b c', drop: 'before' },
        { text: 'a b c', drop: { afterChunks: 2 } },
      ],
    })
    await expect(ask({ stream })).rejects.toThrow(/fetch failed/)
    const response = await ask({ stream })
    expect(response.status).toBe(200)
    await expect(response.text()).rejects.toThrow(/terminated/)
    expect(server?.counters).toMatchObject({ requests: 2, dropped: 2 })
  })

  it('hangs, and notices when the client leaves', async () => {
    await start({ reply: [{ hang: true }, { text: 'a b', latencyMs: 60_000 }] })
    for (const requests of [1, 2]) {
      const control = new AbortController()
      const body = JSON.stringify({ model: 'm', messages: [] })
      const asked = fetch(`${server?.url}/chat/completions`, { method: 'POST', body, signal: control.signal })
      const outcome = asked.then(
        () => 'answered',
        () => 'aborted',
      )
      await expect.poll(() => server?.counters.requests, soon).toBe(requests)
      control.abort()
      expect(await outcome).toBe('aborted')
    }
    await expect.poll(() => server?.requests.map(({ outcome }) => outcome), soon).toEqual(['hung', 'left'])
  })

  it('closes while requests hang', async () => {
    await start({ reply: () => ({ hang: true }) })
    const hanging = ask().then(
      () => 'answered',
      () => 'cut',
    )
    await expect.poll(() => server?.counters.requests, soon).toBe(1)
    await server?.close()
    expect(await hanging).toBe('cut')
  })

  it('injects the same faults for the same seed, whatever the order of the requests', async () => {
    const outcomes = async (seed: number, order: (n: number) => number) => {
      await using faulty = await startModelServer({
        reply: () => 'a b c d e f',
        faults: { seed, rate429: 0.2, rate500: 0.2, dropRate: 0.2 },
      })
      const results = new Map<number, string>()
      await Promise.all(
        Array.from({ length: 120 }, async (_, i) => {
          const n = order(i)
          const body = JSON.stringify({
            model: 'm',
            stream: true,
            messages: [{ role: 'user', content: `request ${n}` }],
          })
          const result = await fetch(`${faulty.url}/chat/completions`, { method: 'POST', body }).then(
            async (response) => (await response.text().catch(() => 'broken')) && String(response.status),
            () => 'dropped',
          )
          results.set(n, result)
        }),
      )
      const { answered, errors, dropped, requests } = faulty.counters
      expect(answered + errors + dropped).toBe(requests)
      return Array.from({ length: 120 }, (_, n) => results.get(n))
    }
    const first = await outcomes(7, (n) => n)
    expect(await outcomes(7, (n) => 119 - n)).toEqual(first)
    expect(await outcomes(8, (n) => n)).not.toEqual(first)
    const seen = new Set(first)
    expect(['200', '429', '500', 'dropped'].every((kind) => seen.has(kind))).toBe(true)
  })

  it('draws anew when the same request comes again', async () => {
    await start({ reply: () => 'x', faults: { seed: 1, rate500: 0.5 } })
    const statuses: number[] = []
    for (let i = 0; i < 20; i++) statuses.push((await ask()).status)
    expect(new Set(statuses)).toEqual(new Set([200, 500]))
  })

  it('answers hundreds at once, and remembers only the newest', async () => {
    let all = () => {}
    const everyone = new Promise<void>((resolve) => {
      all = resolve
    })
    await start({
      // Nobody is answered before all are there.
      reply: async ({ body, index }) => {
        if (index === 399) all()
        await everyone
        return `to ${String((body as any).user)}`
      },
      keep: 50,
    })
    const replies = await Promise.all(
      Array.from(
        { length: 400 },
        async (_, i) => ((await (await ask({ user: i })).json()) as any).choices[0].message.content,
      ),
    )
    expect(replies).toEqual(Array.from({ length: 400 }, (_, i) => `to ${i}`))
    expect(server?.counters).toMatchObject({ requests: 400, answered: 400, peak: 400 })
    expect(server?.requests).toHaveLength(50)
    expect(server?.requests.at(-1)?.index).toBe(399)
    server?.clear()
    expect(server?.requests).toEqual([])
    expect(server?.counters.requests).toBe(0)
  })
})
