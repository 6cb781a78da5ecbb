import { batch, computed, signal } from '@preact/signals'
import type { BranchInfo, CheckpointItem, Facts, ThreadEvent, ThreadInfo } from '../../src/client/index.js'
import { readPathId } from '../../src/client/index.js'
import { client, explain, isDamaged, isMissing } from '../api.js'
import { route, setQuery } from '../router.js'
import { flatten } from './lanes.js'

const PAGE = 1000
/** As many checkpoints as are kept in the page. */
const MOST = 10_000
const RENEW = 50
const SOON_MS = 120

/** What is said right now, and not recorded yet. */
export interface Live {
  readonly step: string
  /** The message that it will be part of. */
  readonly message: string | undefined
  readonly text: string
  readonly reasoning: string
  readonly tools: readonly { readonly callId: string; readonly tool: string; readonly input: string }[]
}

/** One thread as the page has it: its past on all branches, one or two places in it, and what happens now. */
export class ThreadModel {
  readonly id: string
  readonly branch = computed(() => route.value.query.get('branch') ?? 'main')
  /** The checkpoint that is looked at; undefined for the newest. */
  readonly at = computed(() => route.value.query.get('at') ?? undefined)
  /** The one that it is compared with. */
  readonly with = computed(() => route.value.query.get('with') ?? undefined)
  readonly info = signal<ThreadInfo | undefined>(undefined)
  readonly branches = signal<readonly BranchInfo[]>([])
  readonly facts = signal<Facts | undefined>(undefined)
  readonly checkpoints = signal<readonly CheckpointItem[]>([])
  readonly complete = signal(false)
  readonly error = signal<string | undefined>(undefined)
  readonly missing = signal(false)
  /** Its newest entries can't be read. What lies before them can. */
  readonly damaged = signal(false)
  readonly live = signal<readonly Live[]>([])
  readonly flat = computed(() => flatten(this.branches.value))
  /** Checkpoints in the past of the branch that is looked at, the newest first. */
  readonly lineage = computed(() => this.#lineage())
  #known = new Map<string, CheckpointItem>()
  #soon: ReturnType<typeof setTimeout> | undefined
  #renewing = false
  #again = false
  /** Steps whose words are recorded. */
  readonly #done = new Set<string>()

  constructor(id: string) {
    this.id = id
  }

  get client() {
    return client.value.thread(readPathId(this.id), { branch: this.branch.value })
  }

  /** Chooses a place in time. On another branch, that becomes the one that is looked at. */
  choose(checkpoint: CheckpointItem | undefined): void {
    const past = this.lineage.peek()
    if (checkpoint === undefined || past[0]?.id === checkpoint.id) return setQuery({ at: '' })
    if (past.some(({ id }) => id === checkpoint.id)) return setQuery({ at: checkpoint.id })
    const newest = this.checkpoints.peek().find(({ branch }) => branch === checkpoint.branch)
    setQuery({
      branch: checkpoint.branch === 'main' ? '' : checkpoint.branch,
      at: newest?.id === checkpoint.id ? '' : checkpoint.id,
    })
  }

  /** Chooses a second place, to see what changed in between; the same one again takes it back. */
  mark(checkpoint: CheckpointItem): void {
    setQuery({ with: this.with.peek() === checkpoint.id ? '' : checkpoint.id })
  }

  /** The checkpoint that is looked at. */
  readonly here = computed(() => {
    const at = this.at.value
    return at === undefined ? this.lineage.value[0] : this.checkpoints.value.find(({ id }) => id === at)
  })

  async loadInfo(): Promise<void> {
    try {
      const { thread, branches } = await this.client.show()
      batch(() => {
        this.info.value = thread
        this.branches.value = branches
        this.missing.value = false
        // That it is damaged stays said: its state is read on its own, and only that can take it back.
        if (!this.damaged.peek()) this.error.value = undefined
      })
    } catch (error) {
      this.missing.value = isMissing(error)
      this.error.value = explain(error)
    }
  }

  async loadFacts(): Promise<void> {
    const [at, branch] = [this.at.value, this.branch.value]
    // What was recorded before this is asked for is part of what comes: said and recorded, it would stand there twice.
    const recorded = new Set(this.#done)
    try {
      const facts = await this.client.state(at)
      if (at !== this.at.peek() || branch !== this.branch.peek()) return
      batch(() => {
        this.facts.value = facts
        if (at === undefined) this.live.value = this.live.peek().filter(({ step }) => !recorded.has(step))
      })
      if (this.damaged.peek() && at !== undefined) this.error.value = undefined
    } catch (error) {
      this.#tell(error)
    }
  }

  #tell(error: unknown): void {
    if (isDamaged(error)) this.damaged.value = true
    this.error.value = isDamaged(error)
      ? 'This thread is damaged. Verify its chain, under Checks, to find the last good checkpoint.'
      : explain(error)
  }

  /** All that is recorded, page by page. */
  async loadPast(signal: AbortSignal): Promise<void> {
    let cursor: string | undefined
    do {
      const page = await this.client.history({
        allBranches: true,
        events: true,
        limit: PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      })
      if (signal.aborted) return
      this.#add(page.checkpoints)
      cursor = page.cursor
    } while (cursor !== undefined && this.#known.size < MOST)
    this.complete.value = true
  }

  /** Follows the branch that is looked at, until the signal: from what is known of it, so that nothing is missed. */
  async follow(signal: AbortSignal): Promise<void> {
    this.live.value = []
    const branch = this.client
    await this.loadInfo()
    const after = this.info.peek()?.checkpoint
    if (signal.aborted || after === undefined) return
    this.refresh()
    try {
      for await (const event of branch.events({ signal, after })) {
        if (signal.aborted) return
        this.#hear(event)
      }
    } catch (error) {
      if (signal.aborted || isMissing(error)) return
      // Looked at where it was whole, it is enough to know that once.
      if (!isDamaged(error) || this.at.peek() === undefined) this.#tell(error)
    }
  }

  /** Reads what is new, once, however often it is asked for in the meantime. */
  refresh(): void {
    if (this.#soon !== undefined) return
    this.#soon = setTimeout(() => {
      this.#soon = undefined
      void this.#renew()
    }, SOON_MS)
  }

  async #renew(): Promise<void> {
    if (this.#renewing) {
      this.#again = true
      return
    }
    this.#renewing = true
    try {
      const [page] = await Promise.all([
        this.client.history({ allBranches: true, events: true, limit: RENEW }),
        this.loadInfo(),
        this.at.peek() === undefined ? this.loadFacts() : undefined,
      ])
      this.#add(page.checkpoints)
    } catch (error) {
      this.error.value = explain(error)
    }
    this.#renewing = false
    if (this.#again) {
      this.#again = false
      this.refresh()
    }
  }

  #hear(event: ThreadEvent): void {
    const step = String(event['step'] ?? '')
    switch (event.type) {
      case 'token':
        this.#done.delete(step)
        this.#say(event, step)
        return
      case 'superseded':
        this.live.value = this.live.peek().filter((one) => one.step !== step)
        return
      case 'step':
        if (event['status'] !== 'started') this.#done.add(step)
        return
      case 'checkpoint':
        this.refresh()
    }
  }

  #say(event: ThreadEvent, step: string): void {
    const message = event['message'] as string | undefined
    // The step of the next run may have the same name.
    const known = this.live.peek().find((one) => one.step === step && one.message === message)
    const before: Live = known ?? { step, message, text: '', reasoning: '', tools: [] }
    const text = String(event['text'] ?? '')
    const callId = String(event['callId'] ?? '')
    const next: Live =
      event['kind'] === 'tool-input'
        ? { ...before, tools: addInput(before.tools, callId, event['tool'] as string | undefined, text) }
        : event['kind'] === 'reasoning'
          ? { ...before, reasoning: before.reasoning + text }
          : { ...before, text: before.text + text }
    this.live.value = [...this.live.peek().filter((one) => one.step !== step), next]
  }

  #add(found: readonly CheckpointItem[]): void {
    const before = this.#known.size
    let changed = false
    for (const one of found) {
      if (this.#known.has(one.id)) continue
      this.#known.set(one.id, one)
      changed = true
    }
    if (changed || before === 0) this.checkpoints.value = [...this.#known.values()].sort(byAge)
  }

  #lineage(): readonly CheckpointItem[] {
    const found: CheckpointItem[] = []
    let [name, upTo]: [string | undefined, number] = [this.branch.value, Number.POSITIVE_INFINITY]
    const byBranch = new Map<string, CheckpointItem[]>()
    for (const one of this.checkpoints.value) {
      const list = byBranch.get(one.branch)
      if (list) list.push(one)
      else byBranch.set(one.branch, [one])
    }
    while (name !== undefined) {
      for (const one of byBranch.get(name) ?? []) if (one.seq <= upTo) found.push(one)
      const from: BranchInfo['from'] = this.flat.value.find((branch) => branch.name === name)?.from
      name = from?.branch
      upTo = from?.seq ?? 0
    }
    return found
  }
}

function addInput(tools: Live['tools'], callId: string, tool: string | undefined, text: string): Live['tools'] {
  const known = tools.find((one) => one.callId === callId)
  if (known === undefined) return [...tools, { callId, tool: tool ?? '', input: text }]
  return tools.map((one) => (one === known ? { ...one, input: one.input + text } : one))
}

function byAge(a: CheckpointItem, b: CheckpointItem): number {
  if (a.branch === b.branch) return b.seq - a.seq
  return a.at < b.at ? 1 : a.at > b.at ? -1 : a.branch < b.branch ? -1 : 1
}
