interface Checked<Input> {
  readonly success: true
  readonly value: Input
}

/**
 * Arguments that are all text. The demo is part of the package and must run where no schema library is installed;
 * programs of your own use Zod or any other library with Standard Schema.
 */
export function textSchema<const Name extends string, const Optional extends string = never>(
  names: readonly Name[],
  optional: readonly Optional[] = [],
) {
  type Input = { readonly [Key in Name]: string } & { readonly [Key in Optional]?: string }
  const text = { type: 'string' }
  return {
    _type: undefined as unknown as Input,
    jsonSchema: {
      type: 'object',
      properties: Object.fromEntries([...names, ...optional].map((name) => [name, text])),
      required: names,
      additionalProperties: false,
    },
    validate(value: unknown): Checked<Input> | { readonly success: false; readonly error: Error } {
      const given = (typeof value === 'object' && value !== null ? value : {}) as Readonly<Record<string, unknown>>
      const missing = names.find((name) => typeof given[name] !== 'string')
      if (missing !== undefined) return { success: false, error: new Error(`${missing}: must be text`) }
      return { success: true, value: given as Input }
    },
  }
}
