import { existsSync } from 'node:fs'
import type { Holdfast } from '../index.js'
import { CliError, usageError } from './cli-error.js'
import type { Output } from './output.js'
import { readSettings, type Settings } from './settings.js'

/** The options that every command has. */
export interface GlobalOptions {
  readonly store?: string
  readonly tenant?: string
  readonly config?: string
  readonly json?: boolean
  readonly debug?: boolean
}

/** What a command works with. Opens the store when it is first asked for it, and closes it at the end. */
export class CommandContext {
  readonly output: Output
  readonly stdin: NodeJS.ReadStream
  /** A person sits there and can be asked. */
  readonly interactive: boolean
  readonly global: GlobalOptions
  readonly #onInterrupt: () => AbortSignal
  #settings: Promise<Settings> | undefined
  #opened: Holdfast | undefined

  constructor(parts: {
    readonly output: Output
    readonly stdin: NodeJS.ReadStream
    readonly interactive: boolean
    readonly onInterrupt: () => AbortSignal
    readonly global: GlobalOptions
  }) {
    this.output = parts.output
    this.stdin = parts.stdin
    this.interactive = parts.interactive
    this.#onInterrupt = parts.onInterrupt
    this.global = parts.global
  }

  /** Aborted by Ctrl-C or SIGTERM. A command that does not ask for it simply ends then. */
  get signal(): AbortSignal {
    return this.#onInterrupt()
  }

  settings(): Promise<Settings> {
    this.#settings ??= readSettings(this.global, process.env, process.cwd())
    return this.#settings
  }

  /**
   * The store, narrowed to the tenant that was asked for. `create`: it may be made if there is none. `runs`: programs
   * run here; who only looks or answers is not among the processes that report figures.
   */
  async open(options: { readonly create?: boolean; readonly runs?: boolean } = {}): Promise<Holdfast> {
    const settings = await this.settings()
    const { store, tenant } = settings
    if (store === undefined) {
      throw usageError(
        'No store is named.',
        'Pass --store sqlite:agents.db, set HOLDFAST_STORE, or write { "store": … } to holdfast.config.json.',
      )
    }
    if (!options.create) refuseMissing(store, settings.source)
    const { openHoldfast } = await import('../index.js')
    const opened = await openHoldfast(store, { ...settings.options, ...(options.runs ? {} : { telemetry: false }) })
    this.#opened = opened
    return tenant === undefined ? opened : opened.tenant(tenant)
  }

  async close(): Promise<void> {
    await this.#opened?.close()
  }
}

// Opening a local store makes it: a mistyped path would answer "no threads" and leave an empty file behind.
function refuseMissing(store: string, source: string): void {
  const path = /^(?:sqlite|file):(?:\/\/)?([^?]+)/.exec(store)?.[1]
  if (path === undefined || existsSync(path)) return
  throw new CliError('not-found', `There is no store at ${path} (from ${source}).`, {
    remedy: 'Check the path; `holdfast run` makes a store that is not there.',
    data: { path },
  })
}
