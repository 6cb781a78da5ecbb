import { APICallError } from '@ai-sdk/provider'
import { AttemptFailure, readFailure } from '#src/agent/model/attempt/model-failure.js'
import { redactSecrets } from '#src/agent/model/attempt/redact.js'
import { readRetryAfter } from '#src/agent/model/attempt/retry-after.js'
import { describe, expect, it } from 'vitest'

const NOW = Date.UTC(2025, 0, 1)

function apiError(
  statusCode: number | undefined,
  error: object = {},
  headers: Record<string, string> = {},
): APICallError {
  return new APICallError({
    message: (error as { message?: string }).message ?? 'failed',
    url: 'https://api.example/v1/chat?key=AIzaSySecretSecretSecret',
    requestBodyValues: { messages: ['the whole prompt'] },
    ...(statusCode === undefined ? {} : { statusCode }),
    responseHeaders: headers,
    responseBody: JSON.stringify({ error }),
    data: { error },
  })
}

const coded = (message: string, code: string) => Object.assign(new Error(message), { code })

describe('a failure of a model call', () => {
  it.each([
    [408, 'server', true],
    [409, 'server', true],
    [429, 'rate-limit', true],
    [500, 'server', true],
    [502, 'server', true],
    [503, 'server', true],
    [529, 'server', true],
    [400, 'invalid-request', false],
    [401, 'auth', false],
    [402, 'quota', false],
    [403, 'auth', false],
    [404, 'not-found', false],
    [422, 'invalid-request', false],
    [413, 'context-too-long', false],
    [200, 'broken-reply', true],
  ] as const)('with status %i is %s', (status, kind, retryable) => {
    expect(readFailure(apiError(status), NOW)).toMatchObject({ kind, retryable, status })
  })

  it.each([
    ['a refused connection', new TypeError('fetch failed', { cause: coded('connect ECONNREFUSED', 'ECONNREFUSED') })],
    ['a reset inside a stream', new TypeError('terminated', { cause: coded('other side closed', 'UND_ERR_SOCKET') })],
    ['a reset that the provider wrapped', apiErrorWith(coded('read ECONNRESET', 'ECONNRESET'))],
    ['a reset in the body of a good reply', apiErrorWith(coded('aborted', 'ECONNRESET'), 200)],
    ['what is retryable by its own word', apiErrorWith(undefined)],
    ['a name that does not resolve for now', coded('getaddrinfo EAI_AGAIN', 'EAI_AGAIN')],
  ])('is a connection for %s', (_what, error) => {
    expect(readFailure(error, NOW)).toMatchObject({ kind: 'connection', retryable: true })
  })

  function apiErrorWith(cause: unknown, statusCode?: number): APICallError {
    const status = statusCode === undefined ? {} : { statusCode }
    return new APICallError({
      message: 'Cannot connect',
      url: 'x',
      requestBodyValues: {},
      cause,
      isRetryable: true,
      ...status,
    })
  }

  it('is found where others wrap it', () => {
    const wrapped = new Error('outer', {
      cause: new Error('middle', { cause: apiError(503, { message: 'Overloaded', code: 'busy' }) }),
    })
    expect(readFailure(wrapped, NOW)).toMatchObject({
      kind: 'server',
      status: 503,
      message: 'Overloaded',
      providerCode: 'busy',
    })
    const retried = Object.assign(new Error('Failed after 3 attempts'), {
      lastError: apiError(429),
      errors: [apiError(500), apiError(429)],
    })
    expect(readFailure(retried, NOW)).toMatchObject({ kind: 'rate-limit', status: 429 })
    const other = { status: 429, headers: new Headers({ 'Retry-After': '3' }), message: 'slow down' }
    expect(readFailure(other, NOW)).toMatchObject({ kind: 'rate-limit', retryAfterMs: 3000 })
  })

  it('survives errors that hold themselves, and values that are no errors', () => {
    const loop = new Error('loop')
    loop.cause = loop
    for (const error of [loop, undefined, null, 5, 'gone', {}, Object.create(null)]) {
      expect(readFailure(error, NOW)).toMatchObject({ kind: 'unknown', retryable: false })
    }
    expect(readFailure('gone', NOW).message).toBe('gone')
  })

  it.each([
    [
      'OpenAI',
      400,
      {
        message: "This model's maximum context length is 4097 tokens.",
        type: 'invalid_request_error',
        code: 'context_length_exceeded',
      },
    ],
    ['OpenAI, code alone', 400, { message: 'Bad request', code: 'context_length_exceeded' }],
    [
      'Anthropic',
      400,
      { type: 'invalid_request_error', message: 'prompt is too long: 208310 tokens > 200000 maximum' },
    ],
    [
      'Anthropic, sum',
      400,
      {
        type: 'invalid_request_error',
        message: 'input length and `max_tokens` exceed context limit: 199000 + 8000 > 200000',
      },
    ],
    [
      'Google',
      400,
      {
        message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).',
        status: 'INVALID_ARGUMENT',
      },
    ],
    [
      'vLLM',
      400,
      { message: "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens" },
    ],
    ['llama.cpp', 400, { message: 'the request exceeds the available context size. try increasing the context size' }],
    ['Groq', 413, { message: 'Request too large', code: 'request_too_large' }],
    ['Bedrock', 400, { message: 'Input is too long for requested model.' }],
    [
      'Mistral',
      400,
      {
        message:
          'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
      },
    ],
    [
      'xAI',
      400,
      {
        message:
          "This model's maximum prompt length is 131072 but the request contains 200000 tokens. context window exceeded",
      },
    ],
    [
      'Together',
      422,
      {
        message:
          'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens: prompt of 5000 tokens is more than allowed',
      },
    ],
  ])('is a context that is too long in the words of %s', (_who, status, error) => {
    expect(readFailure(apiError(status, error), NOW)).toMatchObject({ kind: 'context-too-long', retryable: false })
  })

  it('is none in other words', () => {
    const kindOf = (status: number, error: object) => readFailure(apiError(status, error), NOW).kind
    expect(
      kindOf(400, { message: 'max_tokens is too large: 5000. This model supports at most 4096 completion tokens' }),
    ).toBe('invalid-request')
    expect(kindOf(400, { message: "Invalid type for 'messages[0].content'" })).toBe('invalid-request')
    expect(
      kindOf(429, {
        message: 'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.',
        code: 'rate_limit_exceeded',
      }),
    ).toBe('rate-limit')
    expect(kindOf(401, { message: 'prompt is too long' })).toBe('auth')
  })

  it('of an empty account is not tried again, nor one that the provider says not to', () => {
    expect(
      readFailure(apiError(429, { message: 'You exceeded your current quota', code: 'insufficient_quota' }), NOW),
    ).toMatchObject({ kind: 'quota', retryable: false })
    expect(readFailure(apiError(500, {}, { 'x-should-retry': 'false' }), NOW)).toMatchObject({
      kind: 'server',
      retryable: false,
    })
  })

  it.each([
    [{ message: 'Overloaded', type: 'overloaded_error' }, 'server', true],
    [{ message: 'slow', code: 'rate_limit_exceeded' }, 'rate-limit', true],
    [{ message: 'slow', code: 429 }, 'rate-limit', true],
    [{ message: 'bad key', type: 'authentication_error' }, 'auth', false],
    [{ message: 'bad', type: 'invalid_request_error' }, 'invalid-request', false],
    [{ message: 'maximum context length', code: 'context_length_exceeded' }, 'context-too-long', false],
    ['something broke', 'broken-reply', true],
    [undefined, 'broken-reply', true],
    [new SyntaxError('Unexpected end of JSON input'), 'broken-reply', true],
  ] as const)('inside a stream, %o, is %s', (error, kind, retryable) => {
    const failure = readFailure(new AttemptFailure('broken-reply', 'The reply ended in an error.', error), NOW)
    expect(failure).toMatchObject({ kind, retryable })
  })

  it('tells the request id and holds nothing of the request', () => {
    const failure = readFailure(
      apiError(500, { message: 'x' }, { 'x-request-id': 'req_1', authorization: 'Bearer sk-secret' }),
      NOW,
    )
    expect(failure.requestId).toBe('req_1')
    expect(JSON.stringify(failure)).not.toMatch(/secret|AIza|whole prompt/i)
  })
})

describe('Retry-After', () => {
  it.each([
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': '0' }, 0],
    [{ 'retry-after-ms': '150', 'retry-after': '9' }, 150],
    [{ 'retry-after': 'Wed, 01 Jan 2025 00:00:07 GMT' }, 7000],
    [{ 'retry-after': 'Tue, 31 Dec 2024 23:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('%o is %s ms', (headers, expected) => {
    expect(readRetryAfter(headers as Record<string, string>, NOW)).toBe(expected)
  })
})

describe('what a provider said', () => {
  it.each([
    'Incorrect API key provided: sk-proj-abcdefghijklmnop. You can find',
    'Incorrect API key provided: sk-abcd****wxyz.',
    'Authorization: Bearer abc.def-ghi',
    '{"api_key":"abcdef123456"}',
    'https://api.example/v1?key=AIzaSyA1234567890abcdef&alt=sse',
    'x-api-key: 0123456789abcdef',
    'token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc is bad',
    'cannot reach https://user:hunter22@proxy.example/',
    'gsk_abcdefghijk1234567890',
  ])('loses its secrets: %s', (text) => {
    expect(redactSecrets(text)).toMatch(/\[hidden\]/)
    expect(redactSecrets(text)).not.toMatch(/abcdef|abcd\*|AIzaSy|0123456789|eyJ|hunter22|abc\.def/)
  })

  it('stays as it is otherwise, but short', () => {
    const text = 'The tokens per minute limit (30000) was reached; the key risk is small.'
    expect(redactSecrets(text)).toBe(text)
    expect(redactSecrets('x'.repeat(100_000)).length).toBeLessThan(700)
  })
})
