import { existsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Holdfast } from '../index.js'
import { CliError, usageError } from './cli-error.js'
import { type Output, shellQuote } from './screen/output.js'
import { readSettings, type Settings } from './input/settings.js'
import type { Surroundings } from './surroundings.js'

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
  /** There is a person who can be asked. */
  readonly interactive: boolean
  readonly global: GlobalOptions
  readonly #around: Surroundings
  #signal: AbortSignal | undefined
  #settings: Promise<Settings> | undefined
  #opened: Holdfast | undefined

  constructor(parts: {
    readonly output: Output
    readonly interactive: boolean
    readonly global: GlobalOptions
    readonly around: Surroundings
  }) {
    this.output = parts.output
    this.interactive = parts.interactive
    this.global = parts.global
    this.#around = parts.around
  }

  /** Aborted by Ctrl-C or SIGTERM. A command that does not ask for it simply ends then. */
  get signal(): AbortSignal {
    this.#signal ??= this.#around.onInterrupt()
    return this.#signal
  }

  /** True once a signal that was asked for is aborted. */
  get interrupted(): boolean {
    return this.#signal?.aborted ?? false
  }

  get stdin(): NodeJS.ReadStream {
    return this.#around.stdin
  }

  /**
   * What a suggested command needs to reach the same store: the options that this one was given. A password is not
   * printed, so a store with one is left to be filled in.
   */
  get where(): string {
    const { store, tenant, config } = this.global
    const url = store !== undefined && mayHoldPassword(store) ? '<url>' : store && shellQuote(store)
    const words = [
      ['--store', url],
      ['--tenant', tenant && shellQuote(tenant)],
      ['--config', config && shellQuote(config)],
    ]
    return words.map(([name, value]) => (value === undefined ? '' : ` ${name} ${value}`)).join('')
  }

  /** A path of the command line, from the folder that it was typed in. */
  path(given: string): string {
    return resolve(this.#around.cwd, given)
  }

  /** A variable of the environment; empty counts as not set. */
  variable(name: string): string | undefined {
    return this.#around.env[name] || undefined
  }

  settings(): Promise<Settings> {
    this.#settings ??= readSettings(this.global, this.#around)
    return this.#settings
  }

  /**
   * The store, restricted to the requested tenant. `create`: it may be created if there is none. `runs`: programs run
   * here; a process that only looks or answers does not report metrics.
   */
  async open(
    options: { readonly create?: boolean; readonly runs?: boolean; readonly archive?: string } = {},
  ): Promise<Holdfast> {
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
    const opened = await openHoldfast(store, {
      ...settings.options,
      ...(options.runs ? {} : { telemetry: false }),
      ...(options.archive === undefined ? {} : { archive: options.archive }),
    })
    this.#opened = opened
    return tenant === undefined ? opened : opened.tenant(tenant)
  }

  async close(): Promise<void> {
    await this.#opened?.close()
  }
}

/** Anything but a plain address: a password may be before the host, or in the query. */
function mayHoldPassword(store: string): boolean {
  if (/^(sqlite|file|memory):/.test(store)) return false
  return !/^\w+:\/\/([^:/?#@]+@)?[^:/?#@]+(:\d+)?(\/[^?#@]*)?$/.test(store)
}

// Opening a local store creates it: a mistyped path would answer "no threads" and leave an empty file behind.
export function refuseMissing(store: string, source: string): void {
  const [, kind, path] = /^(sqlite|file):(?:\/\/)?([^?]+)/.exec(store) ?? []
  // A folder is a store if it says so itself; opening one that is none would fill it.
  if (path === undefined || existsSync(kind === 'file' ? join(path, 'holdfast.json') : path)) return
  if (kind === 'file' && existsSync(path) && !statSync(path).isDirectory()) return
  throw new CliError('not-found', `There is no store at ${path} (from ${source}).`, {
    remedy: 'Check the path; `holdfast run` creates a store that does not exist.',
    data: { path },
  })
}
