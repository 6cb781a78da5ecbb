import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { HoldfastError, InvalidIdError, TooLargeError } from 'holdfast/errors'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../../src/', import.meta.url))

interface ErrorText {
  readonly at: string
  /** Which argument of the error it is. */
  readonly argument: number
  readonly error: string
  /** With `${}` where a value is put in. */
  readonly text: string
}

/** Errors whose first argument is the message; of the others it is put together from parts, or comes second. */
const MESSAGE_FIRST =
  /^(NotFound|Conflict|Corrupt|Storage|Unavailable|InvalidProgram|Incompatible|DataLoss|MissingKey|PauseClosed)Error$|^usageError$/
const ANY = /(Error|Problem|usageError)$/

function textOf(node: ts.Node): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (!ts.isTemplateExpression(node)) return undefined
  return node.head.text + node.templateSpans.map(({ literal }) => `\${}${literal.text}`).join('')
}

function findTexts(): readonly ErrorText[] {
  const found: ErrorText[] = []
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
  for (const file of files) {
    if (file.startsWith('testing')) continue
    const source = ts.createSourceFile(file, readFileSync(join(root, file), 'utf8'), ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (ts.isNewExpression(node) || ts.isCallExpression(node)) {
        const error = node.expression.getText()
        if (ANY.test(error)) {
          for (const [argument, given] of (node.arguments ?? []).entries()) {
            const text = textOf(given)
            if (text === undefined) continue
            const line = source.getLineAndCharacterOfPosition(given.getStart()).line + 1
            found.push({ at: `${relative(root, join(root, file))}:${line}`, argument, error, text })
          }
        }
      }
      node.forEachChild(visit)
    }
    visit(source)
  }
  return found
}

const texts = findTexts()
const name = ({ at, text }: ErrorText) => `${at} ${text}`

describe('the texts of errors', () => {
  it('are found', () => {
    expect(texts.length).toBeGreaterThan(500)
  })

  it('start with a capital and end as sentences do', () => {
    const wrong = texts.filter(({ argument, error, text }) => {
      if (argument !== 0 || !MESSAGE_FIRST.test(error)) return false
      return !/^[A-Z"$-]/.test(text) || !/([.?]|\$\{\}|\$\{\}[")])$/.test(text)
    })
    expect(wrong.map(name)).toEqual([])
  })

  it('say it as an American engineer would', () => {
    const odd = [
      /\bis (no|none) (that|time|text|count|number|pair|JSON|graph|object|list|date|path|version|key|function|clause|operation|command)\b/,
      /\bis none\b/,
      /\bfrom \d+ (on|up)\b/,
      /\bcan not\b/,
      /\b[Mm]end\b/,
      /\b[Ll]eave \S+( \S+)? away\b/,
      /\btaken? up\b/,
      /\bwhat became of\b/,
      /\bnot known\b/,
      /\w\.\.$/,
      /\banew\b/,
    ]
    expect(texts.filter(({ text }) => odd.some((one) => one.test(text))).map(name)).toEqual([])
  })
})

describe('an error', () => {
  it.each([
    ['the shop is closed', 'The shop is closed. Try again.'],
    ['The disk said: no room left.', 'The disk said: no room left. Try again.'],
    ['The disk said: no room left..', 'The disk said: no room left. Try again.'],
    ['Step "a" failed: boom', 'Step "a" failed: boom. Try again.'],
    ['Step "a" failed: why?.', 'Step "a" failed: why? Try again.'],
    ['The call failed: (code 5)', 'The call failed: (code 5). Try again.'],
    ['It says "done."', 'It says "done." Try again.'],
    ['maxSteps was reached', 'maxSteps was reached. Try again.'],
    ['messages[3].role is missing.', 'messages[3].role is missing. Try again.'],
  ])('says %j as %j', (message, said) => {
    expect(new HoldfastError('conflict', message, { remedy: 'Try again.' }).message).toBe(said)
  })

  it('about a field starts with a capital, too', () => {
    expect(new InvalidIdError('thread id', 'is empty', 'Pass one.').message).toBe('The thread id is empty. Pass one.')
    expect(new InvalidIdError('a key of the thread id', 'is empty', '').message).toBe(
      'A key of the thread id is empty.',
    )
    expect(new TooLargeError('signals.go', 'signals', 3, 4, 'Wait.').message).toMatch(/^The signals\.go is over/)
  })
})
