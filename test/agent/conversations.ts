import type { Value } from '#src/codec/value.js'
import fc from 'fast-check'
import type { Message, Part, Usage } from 'holdfast'
import type { ContentItem, FileData, ProviderData, ToolOutput } from 'holdfast/messages'

/** Plain objects: stored values have no null prototypes. */
function rec<Shape>(model: { [Key in keyof Shape]: fc.Arbitrary<Shape[Key]> }): fc.Arbitrary<Shape> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<Shape>
}

/** JSON that survives JSON.stringify and JSON.parse unchanged. */
const anyJson: fc.Arbitrary<Value> = fc
  .jsonValue({ maxDepth: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as Value)

const anyValue: fc.Arbitrary<Value> = fc.oneof(
  { weight: 4, arbitrary: anyJson },
  { weight: 1, arbitrary: fc.date({ noInvalidDate: true }) },
  { weight: 1, arbitrary: fc.bigInt() },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 20 }).map((bytes) => new Uint8Array(bytes)) },
  { weight: 1, arbitrary: rec({ at: fc.date({ noInvalidDate: true }), n: fc.constantFrom(-0, Number.NaN, 1) }) },
)

const name = fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_-]{0,20}$/)
const id = fc.stringMatching(/^[a-z0-9_]{1,16}$/)
const text = fc.string({ unit: 'grapheme', maxLength: 60 })
const filledText = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 60 })
const bytes = fc.uint8Array({ maxLength: 64 }).map((array) => new Uint8Array(array))
const url = fc.webUrl().map((address) => new URL(address).href)

const providerData: fc.Arbitrary<ProviderData> = fc.dictionary(
  fc.constantFrom('anthropic', 'google', 'acme'),
  fc.dictionary(fc.constantFrom('signature', 'cacheControl', 'itemId'), anyJson, { minKeys: 1, noNullPrototype: true }),
  { minKeys: 1, maxKeys: 2, noNullPrototype: true },
)

/** Leaves optional fields out rather than undefined, as stored messages do. */
function part<Shape extends Record<string, unknown>>(
  required: { [Key in keyof Shape]: fc.Arbitrary<Shape[Key]> },
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Shape> {
  return fc
    .tuple(rec(required), fc.record(optional, { requiredKeys: [], noNullPrototype: true }))
    .map(([always, sometimes]) => ({ ...always, ...sometimes }) as unknown as Shape)
}

const meta = { providerMetadata: providerData }

const bytesData = bytes.map((array): FileData => ({ kind: 'bytes', bytes: array }))
const urlData = url.map((address): FileData => ({ kind: 'url', url: address }))
const fileData: fc.Arbitrary<FileData> = fc.oneof(
  bytesData,
  urlData,
  filledText.map((content): FileData => ({ kind: 'text', text: content })),
  fc
    .dictionary(id, id, { minKeys: 1, maxKeys: 2, noNullPrototype: true })
    .map((reference): FileData => ({ kind: 'reference', reference })),
)
const mediaType = fc.constantFrom('image/png', 'image/*', 'application/pdf', 'audio/wav', 'text/plain')

const textPart: fc.Arbitrary<Part> = part({ type: fc.constant('text' as const), text: filledText }, meta)
const reasoningPart: fc.Arbitrary<Part> = part({ type: fc.constant('reasoning' as const), text: filledText }, meta)

const filePart = (data: fc.Arbitrary<FileData>): fc.Arbitrary<Part> =>
  part({ type: fc.constant('file' as const), mediaType, data }, { ...meta, filename: filledText })

const textItem = part<ContentItem>({ type: fc.constant('text' as const), text } as never, meta)
const fileItem = (data: fc.Arbitrary<FileData>, more: Record<string, fc.Arbitrary<unknown>> = {}) =>
  part<ContentItem>({ type: fc.constant('file' as const), data, mediaType } as never, { ...meta, ...more })
const anyItem = fc.oneof(textItem, fileItem(fileData, { filename: text }))
/** In V3 a file by address has no name. */
const v3Item = fc.oneof(textItem, fileItem(bytesData, { filename: text }), fileItem(urlData))

const toolOutput = (item: fc.Arbitrary<ContentItem>, value: fc.Arbitrary<Value>): fc.Arbitrary<ToolOutput> =>
  fc.oneof(
    part<ToolOutput>({ type: fc.constantFrom('text' as const, 'error' as const), value: text } as never, meta),
    part<ToolOutput>({ type: fc.constantFrom('json' as const, 'error-json' as const), value } as never, meta),
    part<ToolOutput>({ type: fc.constant('denied' as const) } as never, { reason: filledText }),
    fc.array(item, { maxLength: 3 }).map((items): ToolOutput => ({ type: 'content', value: items })),
  )

const toolCall = (value: fc.Arbitrary<Value>): fc.Arbitrary<Part> =>
  part(
    { type: fc.constant('tool-call' as const), callId: id, name, input: value },
    { ...meta, providerExecuted: fc.boolean() },
  )

const toolResult = (item: fc.Arbitrary<ContentItem>, value: fc.Arbitrary<Value>): fc.Arbitrary<Part> =>
  part({ type: fc.constant('tool-result' as const), callId: id, name, output: toolOutput(item, value) }, meta)

const approval: fc.Arbitrary<Part> = part(
  { type: fc.constant('tool-approval-response' as const), approvalId: id, approved: fc.boolean() },
  { ...meta, reason: text },
)

const count = fc.nat({ max: 100_000 })
const usage: fc.Arbitrary<Usage> = rec({
  input: count,
  cachedInput: count,
  cacheWrite: count,
  output: count,
  reasoning: count,
  total: count,
  basis: fc.constantFrom('provider' as const, 'estimate' as const, 'mixed' as const),
})

function message(
  role: Message['role'],
  parts: fc.Arbitrary<readonly Part[]>,
  more: Record<string, fc.Arbitrary<unknown>> = {},
) {
  return part<Message>({ id, v: fc.constant(1 as const), role: fc.constant(role), parts, at: fc.nat() } as never, more)
}

const some = (one: fc.Arbitrary<Part>) => fc.array(one, { minLength: 1, maxLength: 4 })

/** Everything a message can be. */
export const anyMessage: fc.Arbitrary<Message> = fc.oneof(
  message('system', some(textPart), meta),
  message('user', some(fc.oneof(textPart, filePart(fileData))), { ...meta, name }),
  message(
    'assistant',
    fc.array(
      fc.oneof(
        textPart,
        reasoningPart,
        part<Part>({ type: fc.constant('refusal' as const), text: filledText } as never),
        filePart(fileData),
        part<Part>({ type: fc.constant('reasoning-file' as const), mediaType, data: fileData } as never, meta),
        toolCall(anyValue),
        part<Part>({
          type: fc.constant('tool-call' as const),
          callId: id,
          name,
          input: fc.constant({}),
          invalid: fc.constant(true),
          raw: text,
        } as never),
        toolResult(anyItem, anyValue),
        part<Part>({ type: fc.constant('tool-approval-request' as const), approvalId: id, callId: id } as never),
        part<Part>({ type: fc.constant('source' as const), sourceType: fc.constant('url'), id, url } as never, {
          title: text,
        }),
        part<Part>({ type: fc.constant('custom' as const), kind: fc.constant('acme.thing') } as never, meta),
      ),
      { maxLength: 5 },
    ),
    {
      ...meta,
      usage,
      model: rec({ provider: name, id: name }),
      finish: rec({ reason: fc.constant('stop') }),
    },
  ),
  message('tool', some(fc.oneof(toolResult(anyItem, anyValue), approval)), meta),
)

/** What a prompt of spec V3 can hold. */
export const v3Message: fc.Arbitrary<Message> = fc.oneof(
  message('system', fc.tuple(text.map((content): Part => ({ type: 'text', text: content }))), meta),
  message('user', some(fc.oneof(textPart, filePart(fc.oneof(bytesData, urlData)))), meta),
  message(
    'assistant',
    some(fc.oneof(textPart, reasoningPart, filePart(bytesData), toolCall(anyJson), toolResult(v3Item, anyJson))),
    meta,
  ),
  message('tool', some(fc.oneof(toolResult(v3Item, anyJson), approval)), meta),
)

/** What OpenAI's chat format can hold, in the order in which it holds it. */
export const openAiMessage: fc.Arbitrary<Message> = fc.oneof(
  message('system', fc.tuple(rec({ type: fc.constant('text' as const), text })), { name }),
  message(
    'user',
    fc.oneof(
      fc.tuple(rec({ type: fc.constant('text' as const), text })),
      fc.array(
        fc.oneof(
          rec({ type: fc.constant('text' as const), text }),
          rec({ type: fc.constant('file' as const), mediaType: fc.constant('image/png'), data: bytesData }),
          rec({ type: fc.constant('file' as const), mediaType: fc.constant('image/*'), data: urlData }),
          rec({
            type: fc.constant('file' as const),
            mediaType: fc.constantFrom('audio/wav', 'audio/mpeg'),
            data: bytesData,
          }),
          part<Part>(
            { type: fc.constant('file' as const), mediaType: fc.constant('application/pdf'), data: bytesData } as never,
            { filename: text },
          ),
        ) as fc.Arbitrary<Part>,
        { minLength: 2, maxLength: 4 },
      ),
    ),
    { name },
  ),
  message(
    'assistant',
    fc
      .tuple(
        fc.array(rec({ type: fc.constant('reasoning' as const), text: filledText }), { maxLength: 1 }),
        fc.array(rec({ type: fc.constant('text' as const), text: filledText }), { maxLength: 3 }),
        fc.array(rec({ type: fc.constant('refusal' as const), text: filledText }), { maxLength: 1 }),
        fc.array(
          fc.oneof(
            rec({ type: fc.constant('tool-call' as const), callId: id, name, input: anyJson }),
            rec({
              type: fc.constant('tool-call' as const),
              callId: id,
              name,
              input: fc.constant({}),
              invalid: fc.constant(true as const),
              raw: text.map((content) => `{"a": ${content}`),
            }),
          ),
          { maxLength: 3 },
        ),
      )
      .map((groups) => groups.flat() as Part[]),
    { name },
  ),
)
