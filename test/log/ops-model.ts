import type { PathPart, Value } from '#src/codec/value.js'
import type { Op, Path, State } from '#src/log/entry/ops.js'
import fc from 'fast-check'
import { anyValue } from '../codec/values.js'

/** Few names, so that operations meet; some of them dangerous. */
const name = fc.constantFrom('a', 'b', 'list', '__proto__', 'constructor', '')
const part: fc.Arbitrary<PathPart> = fc.oneof({ weight: 3, arbitrary: name }, fc.nat(2))
const anyPath: fc.Arbitrary<Path> = fc
  .tuple(name, fc.array(part, { maxLength: 3 }))
  .map(([first, rest]) => [first, ...rest])

const smallValue: fc.Arbitrary<Value> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom<Value[]>([], {}, 1, 'x', null, { a: {} }, [[]], { list: [{}, []] }) },
  anyValue,
)

export const anyOp: fc.Arbitrary<Op> = fc.oneof(
  fc.tuple(fc.constant('set' as const), anyPath, smallValue),
  fc.tuple(fc.constant('delete' as const), anyPath),
  fc.tuple(fc.constant('push' as const), anyPath, fc.array(smallValue, { maxLength: 3 })),
  fc.tuple(fc.constant('splice' as const), anyPath, fc.nat(3), fc.nat(3), fc.array(smallValue, { maxLength: 3 })),
  fc.tuple(fc.constant('copy' as const), anyPath, anyPath),
  fc.tuple(fc.constant('concat' as const), anyPath, anyPath),
)

/** Operations on few short paths: most of them fit, so that values come to lie in several places and change there. */
const nearPath: fc.Arbitrary<Path> = fc.constantFrom<Path[]>(
  ['a'],
  ['b'],
  ['list'],
  ['list', 0],
  ['list', 1],
  ['a', 'list'],
  ['a', 'list', 0],
  ['b', 'a'],
  ['b', 'list'],
)
const nearValue = fc.constantFrom<Value[]>(1, {}, [], [[]], [{}], { list: [[1]] }, { a: {}, list: [] })

export const referringOp: fc.Arbitrary<Op> = fc.oneof(
  { weight: 2, arbitrary: fc.tuple(fc.constant('set' as const), nearPath, nearValue) },
  { weight: 1, arbitrary: fc.tuple(fc.constant('delete' as const), nearPath) },
  { weight: 3, arbitrary: fc.tuple(fc.constant('push' as const), nearPath, fc.tuple(nearValue)) },
  {
    weight: 1,
    arbitrary: fc.tuple(fc.constant('splice' as const), nearPath, fc.nat(1), fc.nat(1), fc.tuple(nearValue)),
  },
  { weight: 4, arbitrary: fc.tuple(fc.constant('copy' as const), nearPath, nearPath) },
  { weight: 4, arbitrary: fc.tuple(fc.constant('concat' as const), nearPath, nearPath) },
)

export const anyState: fc.Arbitrary<State> = fc
  .array(fc.tuple(name, smallValue), { maxLength: 4 })
  .map((entries) => Object.fromEntries(entries))

type Tree = Map<string, Tree | Leaf> | (Tree | Leaf)[]
type Leaf = { readonly leaf: Value }

/** The same operation on maps and mutable lists, where no name is special. */
export function applyPlainly(state: State, op: Op): State | 'refused' {
  const root = toTree(state) as Map<string, Tree | Leaf>
  const [name, path] = op
  const missing = Symbol('missing')
  const source = name === 'copy' || name === 'concat' ? find(root, op[2]) : undefined
  if (name === 'copy' && source === undefined) return 'refused'
  if (name === 'concat' && !Array.isArray(source)) return 'refused'
  const referred = source === undefined ? null : toValue(source)
  let node: Tree | Leaf = root
  const made: (() => void)[] = []
  for (const [i, key] of path.entries()) {
    const isLast = i === path.length - 1
    let child: Tree | Leaf | typeof missing
    if (typeof key === 'number') {
      if (!Array.isArray(node) || key >= node.length) return 'refused'
      child = node[key] as Tree | Leaf
    } else {
      if (!(node instanceof Map)) return 'refused'
      child = node.get(key) ?? missing
    }
    const parent: Tree = node
    const put = (value: Tree | Leaf) => {
      if (Array.isArray(parent)) parent[key as number] = value
      else parent.set(key as string, value)
    }
    if (!isLast) {
      if (child !== missing) {
        node = child
        continue
      }
      const empty: Tree = new Map()
      made.push(() => put(empty))
      node = empty
      continue
    }
    switch (name) {
      case 'set':
        put(toTree(op[2]))
        break
      case 'delete':
        if (Array.isArray(parent)) return 'refused'
        parent.delete(key as string)
        return toValue(root) as State
      case 'copy':
        put(toTree(referred))
        break
      case 'push':
      case 'concat':
      case 'splice': {
        const list = child === missing ? [] : child
        if (!Array.isArray(list)) return 'refused'
        if (name === 'push') list.push(...op[2].map(toTree))
        else if (name === 'concat') list.push(...(referred as Value[]).map(toTree))
        else {
          if (op[2] + op[3] > list.length) return 'refused'
          list.splice(op[2], op[3], ...op[4].map(toTree))
        }
        put(list)
      }
    }
  }
  for (const make of made) make()
  return toValue(root) as State
}

function find(root: Tree, path: Path): Tree | Leaf | undefined {
  let node: Tree | Leaf | undefined = root
  for (const key of path) {
    if (typeof key === 'number') node = Array.isArray(node) ? node[key] : undefined
    else node = node instanceof Map ? node.get(key) : undefined
  }
  return node
}

function toTree(value: Value): Tree | Leaf {
  if (Array.isArray(value)) return value.map(toTree)
  if (typeof value !== 'object' || value === null || value instanceof Date || value instanceof Uint8Array)
    return { leaf: value }
  return new Map(Object.entries(value).map(([key, child]) => [key, toTree(child)]))
}

function toValue(tree: Tree | Leaf): Value {
  if (Array.isArray(tree)) return tree.map(toValue)
  if (tree instanceof Map) return Object.fromEntries([...tree].map(([key, child]) => [key, toValue(child)]))
  return tree.leaf
}
