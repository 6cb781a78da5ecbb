import type { Value } from '../../codec/value.js'
import { InvalidValueError } from '../../core/errors.js'
import { Evaluation } from './evaluate.js'
import { deepest, type Problem } from './findings.js'
import { Patterns, refusePattern } from './pattern.js'
import { References } from './references.js'

const MAX_REPORTED = 50

/**
 * A JSON Schema that values are checked against, of 2020-12 or an older draft. The work for one value is limited,
 * whatever the schema and the value: both may come from strangers.
 */
export class SchemaChecker {
  readonly #schema: Value
  readonly #references: References
  readonly #patterns: Patterns

  private constructor(schema: Value, references: References, patterns: Patterns) {
    this.#schema = schema
    this.#references = references
    this.#patterns = patterns
  }

  static async of(schema: Value): Promise<SchemaChecker> {
    const references = new References(schema)
    return new SchemaChecker(schema, references, await Patterns.for(references.patterns))
  }

  /** Throws an error that says what is wrong with a value, and where. */
  check(value: Value): void {
    const problems = this.#look(value)
    if (problems.length === 0) return
    const { path, message } = deepest(problems)
    throw new InvalidValueError(path, message, 'Send a value that fits the schema.', {
      schema: this.#schema,
      errors: problems.slice(0, MAX_REPORTED),
    })
  }

  #look(value: Value): readonly Problem[] {
    const [broken] = this.#references.problems
    if (broken !== undefined) return [{ path: '$', message: `can't be checked: its schema ${broken}` }]
    return new Evaluation(this.#references, this.#patterns).apply(this.#schema, value, '$').problems
  }
}

/** Why nothing can be checked against a schema, to be said where it is declared; undefined when it can. */
export function refuseSchema(schema: Value): string | undefined {
  const references = new References(schema)
  const [broken] = references.problems
  if (broken !== undefined) return broken
  for (const pattern of references.patterns) {
    const refusal = refusePattern(pattern)
    if (refusal !== undefined) return refusal
  }
  return undefined
}
