import { isRecord, type PathPart, renderPath, setOwn, type Value, Whole } from '../../codec/value.js'
import { InvalidValueError } from '../../core/errors.js'
import { isWide, ownValue, WIDE_KEYS, widen, withWideProperty } from '../../codec/wide-record.js'

/** The state of a log: an object whose keys the layers above declare. */
export type State = { readonly [key: string]: Value }

/** The path to a value inside the state: names of fields and positions in lists. */
export type Path = readonly [string, ...PathPart[]]

/** What a step changed, after its reducers ran: folding calls no user code. Stored as these tuples. */
export type Op =
  | readonly ['set', Path, Value]
  | readonly ['delete', Path]
  | readonly ['push', Path, readonly Value[]]
  | readonly ['splice', Path, number, number, readonly Value[]]
  | readonly ['copy', Path, Path]
  | readonly ['concat', Path, Path]

/** Sets the value at a path. Missing objects on the way are created. */
export function set(path: string | Path, value: unknown): Op {
  return ['set', toPath(path), value as Value]
}

/** Removes a property. Removing what doesn't exist changes nothing. */
export function remove(path: string | Path): Op {
  return ['delete', toPath(path)]
}

/** Adds items to the end of a list, which is created if missing. */
export function push(path: string | Path, ...items: readonly unknown[]): Op {
  return ['push', toPath(path), items as readonly Value[]]
}

/** Replaces `count` items of a list, starting at `start`. */
export function splice(path: string | Path, start: number, count: number, ...items: readonly unknown[]): Op {
  return ['splice', toPath(path), start, count, items as readonly Value[]]
}

/** Sets the value at a path to one from elsewhere in the state, so that what is recorded is not stored twice. */
export function copy(path: string | Path, from: Path): Op {
  return ['copy', toPath(path), toPath(from)]
}

/** Adds the items of a list from elsewhere in the state to the end of a list. */
export function concat(path: string | Path, from: Path): Op {
  return ['concat', toPath(path), toPath(from)]
}

/** Lets the values of an op move to blobs as a whole: each pushed item by itself, a set value by itself. */
export function markWholes(op: Op): unknown {
  switch (op[0]) {
    case 'set':
      return ['set', op[1], new Whole(op[2])]
    case 'push':
      return ['push', op[1], op[2].map((item) => new Whole(item))]
    case 'splice':
      return ['splice', op[1], op[2], op[3], op[4].map((item) => new Whole(item))]
    default:
      return op
  }
}

/**
 * The state after the op. The one before is untouched and shares what did not change; only containers in `owned`,
 * which nobody else has seen, are changed in place. Folding a long tail then copies each container once.
 */
export function applyOp(state: State, op: Op, owned?: Set<object>): State {
  const [name, path] = op
  return change(state, path, 0, owned, (old) => {
    switch (name) {
      case 'set':
        return op[2]
      case 'delete':
        return undefined
      case 'push': {
        return growList(list(old, path), op[2], owned)
      }
      case 'splice': {
        const items = ownList(list(old, path), owned)
        if (op[2] > items.length || op[2] + op[3] > items.length) {
          throw misfit(path, `has ${items.length} items, too few to replace ${op[3]} from ${op[2]}`)
        }
        // Not as arguments of one call: a hundred thousand of them overflow the stack.
        const rest = items.splice(op[2]).slice(op[3])
        for (const item of op[4]) items.push(item)
        for (const item of rest) items.push(item)
        return items
      }
      case 'copy':
        return share(present(state, op[2]), owned)
      case 'concat': {
        // All of the source first: it may be the very list that grows, or contain it, and then neither is ours alone.
        const added = list(present(state, op[2]), op[2]).slice()
        for (const item of added) share(item, owned)
        return growList(list(old, path), added, owned)
      }
      default:
        throw misfit(path, `is changed by an unknown operation "${String(name)}"`)
    }
  }) as State
}

/** The value at a path, or undefined. Names lead into objects and positions into lists, as they do in operations. */
export function valueAt(state: State, path: readonly PathPart[]): Value | undefined {
  let value: Value = state
  for (const part of path) {
    let inner: Value | undefined
    if (typeof part !== 'number') inner = isRecord(value) ? ownValue(value, part) : undefined
    else if (Array.isArray(value)) inner = value[part]
    if (inner === undefined) return undefined
    value = inner
  }
  return value
}

/** True for exactly the tuples above, with values of any kind: what `decodeOps` and writers check. */
export function isOp(op: unknown): op is Op {
  if (!Array.isArray(op) || !isPath(op[1])) return false
  switch (op[0]) {
    case 'set':
      return op.length === 3
    case 'delete':
      return op.length === 2
    case 'push':
      return op.length === 3 && Array.isArray(op[2])
    case 'splice':
      return op.length === 5 && isCount(op[2]) && isCount(op[3]) && Array.isArray(op[4])
    case 'copy':
    case 'concat':
      return op.length === 3 && isPath(op[2])
    default:
      return false
  }
}

type Edit = (old: Value | undefined) => Value | undefined

function change(
  node: Value | undefined,
  path: Path,
  at: number,
  owned: Set<object> | undefined,
  edit: Edit,
): Value | undefined {
  if (at === path.length) return edit(node)
  const key = path[at] as PathPart
  if (typeof key === 'number') {
    const old = list(node, path)
    if (key >= old.length) throw misfit(path, `has no item ${key}`)
    const value = change(old[key], path, at + 1, owned, edit)
    if (value === undefined) throw misfit(path, 'is a list item, which can only be removed by splice')
    const items = ownList(old, owned)
    items[key] = value
    return items
  }
  const old = node === undefined ? {} : node
  if (!isRecord(old)) throw misfit(path, `leads through something that is not an object at "${key}"`)
  const before = ownValue(old, key)
  const value = change(before, path, at + 1, owned, edit)
  // Not `old`: removing below what doesn't exist must not leave an empty object behind.
  if (value === undefined && before === undefined) return node
  return withProperty(old, key, value, owned)
}

function present(state: State, path: Path): Value {
  const value = valueAt(state, path)
  if (value === undefined) throw misfit(path, 'holds nothing that could be referred to')
  return value
}

// Seen from two places from now on, so neither may change it in place.
function share(value: Value, owned: Set<object> | undefined): Value {
  if (owned === undefined || owned.size === 0 || typeof value !== 'object' || value === null) return value
  if (!owned.delete(value)) return value
  for (const inner of Object.values(value)) share(inner as Value, owned)
  return value
}

/** Copied and grown at once: a copy that grows is allocated twice. */
function growList(items: readonly Value[], added: readonly Value[], owned: Set<object> | undefined): Value[] {
  if (owned?.has(items)) {
    for (const item of added) (items as Value[]).push(item)
    return items as Value[]
  }
  const grown = [...items, ...added]
  owned?.add(grown)
  return grown
}

function ownList(items: readonly Value[], owned: Set<object> | undefined): Value[] {
  if (owned?.has(items)) return items as Value[]
  const copy = [...items]
  owned?.add(copy)
  return copy
}

function withProperty(record: State, key: string, value: Value | undefined, owned: Set<object> | undefined): State {
  if (isWide(record)) return withWideProperty(record, key, value, owned)
  let copy = record as Record<string, Value>
  if (!owned?.has(record)) {
    if (Object.keys(record).length >= WIDE_KEYS) return withWideProperty(widen(record), key, value, owned)
    // Spread defines own properties, `__proto__` included, where assignment would not.
    copy = { ...record }
    owned?.add(copy)
  }
  if (value === undefined) delete copy[key]
  else setOwn(copy, key, value)
  return copy
}

function list(value: Value | undefined, path: Path): readonly Value[] {
  if (value === undefined) return []
  if (!Array.isArray(value)) throw misfit(path, 'is not a list')
  return value
}

function toPath(path: string | Path): Path {
  const parts: unknown = typeof path === 'string' ? [path] : path
  if (!isPath(parts)) {
    throw new InvalidValueError('path', 'is not a path', 'Start with a key; continue with keys and list positions.')
  }
  return parts
}

function isPath(path: unknown): path is Path {
  return (
    Array.isArray(path) &&
    path.length <= MAX_PATH_PARTS &&
    typeof path[0] === 'string' &&
    path.every((part) => typeof part === 'string' || isCount(part))
  )
}

/** Paths are followed by recursion, so a stored one must not be able to overflow the stack. */
const MAX_PATH_PARTS = 1000

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function misfit(path: Path, problem: string): InvalidValueError {
  return new InvalidValueError(renderPath(path), problem, 'Change the operation to fit the state it is applied to.')
}

/** What an entry does to the state of its log, one function each: `ops.set('total', 3)`. */
export const ops = { push, remove, set, splice } as const
