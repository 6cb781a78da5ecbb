import type { Value } from '../../../index.js'
import { type Op, type Path, ops } from '../../../log/index.js'
import { encode, isPlainObject, type PathPart, TAG } from '../values/encode.js'
import { type Effort, isRecordNode, matches } from '../values/match.js'

const { remove, set } = ops

/** About this many values of a list, some 16 messages, are compared before equal references are trusted. */
const RECENT_EFFORT = 160

/** The live values that stored ones were made from, so that the next ones are compared by reference. */
export class LiveLists {
  readonly #items = new WeakMap<object, readonly unknown[]>()
  /** Held weakly: only the graph that works with a value keeps it. */
  readonly #values = new WeakMap<object, WeakRef<object>>()

  learn(node: Value | undefined, value: unknown): void {
    if (typeof node !== 'object' || node === null || typeof value !== 'object' || value === null) return
    if (Array.isArray(node) && Array.isArray(value)) {
      if (node.length !== value.length) return
      this.#items.set(node, value.slice())
    }
    this.#values.set(node, new WeakRef(value))
  }

  /** Whether a stored value was made of this very object, and of a list no more or less. */
  isMadeOf(node: Value | undefined, value: unknown): boolean {
    if (typeof node !== 'object' || node === null || this.#values.get(node)?.deref() !== value) return false
    return !Array.isArray(node) || (value as unknown[]).length === node.length
  }

  of(node: readonly Value[]): readonly unknown[] | undefined {
    return this.#items.get(node)
  }
}

/** Finds what turns a stored value into a live one. What did not change costs nothing. */
export class Differ {
  readonly #live: LiveLists
  readonly #effort: number

  constructor(live: LiveLists, options: { readonly compare: 'recent' | 'all' }) {
    this.#live = live
    this.#effort = options.compare === 'all' ? Number.POSITIVE_INFINITY : RECENT_EFFORT
  }

  /** Operations as `diff` finds them, for a value that is said to be unchanged: the same object counts as unchanged. */
  diffUnchanged(path: Path, node: Value | undefined, value: unknown): Op[] {
    return value !== undefined && this.#live.isMadeOf(node, value) ? [] : this.diff(path, node, value)
  }

  /** Operations at `path` that make `node` stand for `value`. */
  diff(path: Path, node: Value | undefined, value: unknown): Op[] {
    const ops: Op[] = []
    this.#diff(path, node, value, ops)
    return ops
  }

  #diff(path: Path, node: Value | undefined, value: unknown, ops: Op[]): void {
    if (Array.isArray(value) && Array.isArray(node)) return this.#list(path, node as readonly Value[], value, ops)
    if (typeof value === 'object' && value !== null && isPlainObject(value) && !Object.hasOwn(value, TAG)) {
      if (isRecordNode(node) && keepsOrder(Object.keys(node), Object.keys(value))) {
        return this.#record(path, node, value as Record<string, unknown>, ops)
      }
    }
    if (node === undefined || !matches(value, node, { left: 0 })) ops.push(set(path, encode(value, valuePath(path))))
  }

  #record(path: Path, node: { readonly [key: string]: Value }, value: Record<string, unknown>, ops: Op[]): void {
    if (Object.getOwnPropertySymbols(value).length > 0) encode(value, valuePath(path))
    for (const key of Object.keys(node)) if (!Object.hasOwn(value, key)) ops.push(remove([...path, key]))
    for (const key of Object.keys(value)) {
      this.#diff([...path, key], Object.hasOwn(node, key) ? node[key] : undefined, value[key], ops)
    }
  }

  #list(path: Path, node: readonly Value[], items: readonly unknown[], ops: Op[]): void {
    const live = this.#live.of(node)
    const effort: Effort = { left: this.#effort }
    const shorter = Math.min(node.length, items.length)
    let same = 0
    if (live) {
      while (same < shorter && items[same] === live[same]) same++
      same = this.#verifyRecent(node, items, same, effort)
    }
    while (same < shorter && matches(items[same], node[same] as Value, effort)) same++
    if (same === node.length) {
      if (items.length > same) ops.push(['push', path, this.#encodeItems(path, items, same, items.length)])
      return
    }
    let tail = 0
    while (
      tail < shorter - same &&
      this.#isSame(items[items.length - 1 - tail], node.length - 1 - tail, node, live, effort)
    ) {
      tail++
    }
    const until = items.length - tail
    ops.push(['splice', path, same, node.length - same - tail, this.#encodeItems(path, items, same, until)])
  }

  // A node that changed an object in place passes the same reference. The newest items, where that happens, are
  // compared in full; how many does not depend on the length of the list.
  #verifyRecent(node: readonly Value[], items: readonly unknown[], same: number, effort: Effort): number {
    let verified = same
    for (let i = same - 1; i >= 0 && effort.left > 0; i--) {
      if (!matches(items[i], node[i] as Value, effort)) verified = i
    }
    return verified
  }

  #isSame(
    item: unknown,
    at: number,
    node: readonly Value[],
    live: readonly unknown[] | undefined,
    effort: Effort,
  ): boolean {
    if (live && live[at] === item && effort.left <= 0) return true
    return matches(item, node[at] as Value, effort)
  }

  #encodeItems(path: Path, items: readonly unknown[], from: number, to: number): Value[] {
    const at = valuePath(path)
    const nodes: Value[] = []
    for (let i = from; i < to; i++) nodes.push(encode(items[i], [...at, i]))
    return nodes
  }
}

// Operations add new keys at the end and keep the others where they are.
function keepsOrder(old: readonly string[], next: readonly string[]): boolean {
  const all = new Set(next)
  const kept = old.filter((key) => all.has(key))
  return kept.every((key, i) => key === next[i])
}

/** The path as the user knows it: `channels` is `channel_values` there. */
function valuePath([first, ...rest]: Path): PathPart[] {
  return [first === 'channels' ? 'channel_values' : first, ...rest]
}
