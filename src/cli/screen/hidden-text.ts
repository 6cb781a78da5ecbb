// Control, format and other characters that show nothing, or change how their surroundings are shown: escapes,
// direction changes, zero-width characters, tags, variation selectors, fillers, lone surrogates. A question could look
// different from the one that is answered, or carry what nobody sees.
const CLASS = '\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}\\u2800'
// The one that asks for the colored form of a picture stays if it follows one.
const HIDDEN = `(?!\\uFE0F)[${CLASS}]|(?<!\\p{Extended_Pictographic})\\uFE0F`

const ALL = new RegExp(HIDDEN, 'gu')
const BUT_LINES = new RegExp(`(?![\\n\\t])(?:${HIDDEN})`, 'gu')

/** Every character that can't be seen, as JSON escapes it. Line breaks become spaces. */
export function showHidden(text: string): string {
  return text.replace(/\s*\r?\n\s*|\t/g, ' ').replace(ALL, escapeUnits)
}

/** The same for text of several lines, which stay. */
export function showHiddenInLines(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(BUT_LINES, escapeUnits)
}

/** The same, except for sequences that `spare` finds: our own colors. */
export function showHiddenBut(spare: string): (text: string) => string {
  const pattern = new RegExp(`(${spare})|(?![\\n\\t])(?:${HIDDEN})`, 'gu')
  return (text) => text.replace(pattern, (char, spared?: string) => spared ?? escapeUnits(char))
}

/** In units of UTF-16, as JSON has it: what is shown can be read back. */
function escapeUnits(char: string): string {
  return char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}
