import type { MetadataValue } from '../../../driver.js'

type Metadata = Readonly<Record<string, unknown>>

/** Labels hold texts, numbers and booleans; anything else is kept as JSON behind this. */
const JSON_MARK = 'json:'
const OWN = 'holdfast.'

/** A thread's metadata as labels of the index. */
export function toLabels(metadata: Metadata): Record<string, MetadataValue | null> {
  return Object.fromEntries(
    Object.entries(metadata)
      .filter(([name, value]) => !name.startsWith(OWN) && value !== undefined)
      .map(([name, value]) => [name, value === null ? null : toLabel(value)]),
  )
}

function toLabel(value: unknown): MetadataValue {
  if (typeof value === 'number' || typeof value === 'boolean') return value
  if (typeof value === 'string' && !value.startsWith(JSON_MARK)) return value
  return JSON_MARK + JSON.stringify(value)
}

/** The metadata that labels stand for, without our own. */
export function fromLabels(labels: Readonly<Record<string, MetadataValue>>): Metadata {
  return Object.fromEntries(
    Object.entries(labels)
      .filter(([name]) => !name.startsWith(OWN))
      .map(([name, value]) => [
        name,
        typeof value === 'string' && value.startsWith(JSON_MARK) ? JSON.parse(value.slice(JSON_MARK.length)) : value,
      ]),
  )
}
