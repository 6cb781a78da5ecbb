import { type Signal, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { visible } from '../format.js'

/** A JSON Schema, as it was stored with a question. */
export type Schema = { readonly [keyword: string]: unknown } | undefined

interface FieldProps {
  readonly schema: Schema
  readonly name: string
  readonly value: unknown
  readonly required?: boolean
  readonly onChange: (value: unknown) => void
}

/** A form made of a schema: fields where it names types, and JSON where it does not. */
export function SchemaForm(props: {
  readonly schema: Schema
  readonly value: Signal<unknown>
  readonly label: string
}) {
  const { schema, value, label } = props
  return <Field schema={schema} name={label} value={value.value} onChange={(next) => (value.value = next)} required />
}

function Field(props: FieldProps) {
  const { schema, value, name, onChange, required } = props
  const type = schema?.['type']
  const choices = schema?.['enum']
  if (Array.isArray(choices) && choices.every((one) => typeof one === 'string')) {
    return (
      <Labelled {...props}>
        <select value={String(value ?? '')} onChange={(event) => onChange(event.currentTarget.value || undefined)}>
          {!(required && value !== undefined) && <option value="">…</option>}
          {choices.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </Labelled>
    )
  }
  if (type === 'boolean') {
    return (
      <label class="check">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
        {visible(name)}
      </label>
    )
  }
  if (type === 'string') {
    const text = typeof value === 'string' ? value : ''
    const give = (next: string) => onChange(next === '' && !required ? undefined : next)
    return (
      <Labelled {...props}>
        {text.length > 60 || text.includes('\n') ? (
          <textarea rows={4} value={text} onInput={(event) => give(event.currentTarget.value)} />
        ) : (
          <input type="text" value={text} onInput={(event) => give(event.currentTarget.value)} />
        )}
      </Labelled>
    )
  }
  if (type === 'number' || type === 'integer') {
    return (
      <Labelled {...props}>
        <input
          type="number"
          step={type === 'integer' ? 1 : 'any'}
          value={typeof value === 'number' ? value : ''}
          onInput={(event) => {
            const { value: text } = event.currentTarget
            onChange(text === '' ? undefined : Number(text))
          }}
        />
      </Labelled>
    )
  }
  if (type === 'object' && typeof schema?.['properties'] === 'object') return <Group {...props} />
  return <JsonField {...props} />
}

function Group({ schema, name, value, onChange }: FieldProps) {
  const properties = schema?.['properties'] as Readonly<Record<string, Schema>>
  const needed = new Set((schema?.['required'] as readonly string[] | undefined) ?? [])
  const held = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>
  return (
    <fieldset class="group">
      <legend>{visible(name)}</legend>
      {Object.entries(properties).map(([key, one]) => (
        <Field
          key={key}
          schema={one}
          name={key}
          value={held[key]}
          required={needed.has(key)}
          onChange={(next) => {
            const { [key]: _, ...rest } = held
            onChange(next === undefined ? rest : { ...held, [key]: next })
          }}
        />
      ))}
    </fieldset>
  )
}

/** JSON as text. While it is none, the value stays what it was and the field says so. */
export function JsonField({ name, value, onChange, schema, required }: FieldProps) {
  const begun = useMemo(() => (value === undefined ? '' : JSON.stringify(value, null, 2)), [])
  const text = useSignal(begun)
  const isWrong = useSignal(false)
  return (
    <Labelled
      name={name}
      schema={schema}
      required={required}
      note={isWrong.value ? 'This is no valid JSON yet.' : undefined}
    >
      <textarea
        class="code"
        spellcheck={false}
        rows={Math.min(14, Math.max(2, text.value.split('\n').length))}
        value={text.value}
        aria-invalid={isWrong.value}
        onInput={(event) => {
          text.value = event.currentTarget.value
          try {
            const next: unknown = text.value.trim() === '' ? undefined : JSON.parse(text.value)
            isWrong.value = false
            onChange(next)
          } catch {
            isWrong.value = true
          }
        }}
      />
    </Labelled>
  )
}

function Labelled(props: {
  readonly name: string
  readonly schema?: Schema
  readonly required?: boolean
  readonly note?: string
  readonly children: preact.ComponentChildren
}) {
  const described = props.schema?.['description']
  return (
    <label class="field">
      <span class="field-name">
        {visible(props.name)}
        {!props.required && <span class="field-optional"> optional</span>}
      </span>
      {props.children}
      {typeof described === 'string' && <span class="field-note">{visible(described)}</span>}
      {props.note && (
        <span class="field-note" data-tone="bad">
          {props.note}
        </span>
      )}
    </label>
  )
}
