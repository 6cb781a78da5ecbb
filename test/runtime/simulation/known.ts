import type { Effect } from 'holdfast'
import type { Chaos } from './chaos.js'
import type { NodeSpec, ProgramSpec, StatementSpec, WorkSpec } from './spec.js'

/** Of an effect, what is not said: it works at once, and people are asked what became of it. */
function work(effect: Effect, other: Partial<WorkSpec> = {}): WorkSpec {
  const rest = { mishaps: [], hopeless: false, spareAttempts: 2, ms: 0, store: false, shortTtl: false }
  return { effect, ...rest, reconcile: 'truth', onUnknown: 'pause', ...other }
}

function step(effect: Effect, other: Partial<WorkSpec> = {}, caught = false): StatementSpec {
  return { kind: 'step', work: work(effect, other), caught }
}

function node(effect: Effect, other: Partial<WorkSpec> = {}): NodeSpec {
  return { kind: 'node', work: work(effect, other), body: [], gate: 'none' }
}

function all(...parts: readonly (readonly StatementSpec[])[]): StatementSpec {
  return { kind: 'all', parts: parts.map((body) => ({ kind: 'loop', times: 1, body })) }
}

const CALM: Chaos = { blows: [], modes: ['run'], options: [{}], delays: [10_001], secondInput: false }
const HOUR = 3_600_000

/** Programs and blows that once broke a rule, as small as they were made. */
export const KNOWN: readonly { readonly what: string; readonly spec: ProgramSpec; readonly blows: Chaos }[] = [
  {
    what: 'steps of a cancelled run that end while the next one begins',
    spec: {
      kind: 'graph',
      block: {
        kind: 'parallel',
        blocks: [
          {
            kind: 'parallel',
            blocks: [
              { kind: 'node', work: undefined, body: [step('read')], gate: 'none' },
              node('idempotent', { mishaps: ['throw-before'] }),
            ],
          },
          { kind: 'parallel', blocks: [node('read'), node('read', { hopeless: true })] },
          node('read'),
        ],
      },
    },
    blows: {
      ...CALM,
      blows: [
        { kind: 'kill', at: 6 },
        { kind: 'second-input', at: 6 },
        { kind: 'cancel', at: 13 },
      ],
      options: [{ durability: 'sync', frequency: { every: 3 } }],
      secondInput: true,
    },
  },
  {
    what: 'the age of an idempotent key, forgotten when a program came between that does not fit',
    spec: {
      kind: 'flow',
      body: [all([step('idempotent', { shortTtl: true })], [step('once')]), step('reconcilable')],
    },
    blows: {
      ...CALM,
      blows: [
        { kind: 'kill', at: 1 },
        { kind: 'kill', at: 16 },
      ],
      edits: [{ from: 2, target: 1, change: { kind: 'remove' } }],
    },
  },
  {
    what: 'a begun effect that comes back with another input, and a program that catches that',
    spec: { kind: 'flow', body: [step('once', {}, true)] },
    blows: {
      ...CALM,
      blows: [{ kind: 'kill', at: 8 }],
      edits: [{ from: 1, target: 0, change: { kind: 'input' } }],
    },
  },
  {
    what: 'a branch that fails again at once, before another has come back to what it had begun',
    spec: {
      kind: 'flow',
      body: [
        all(
          [{ kind: 'receive', inTime: false }, step('idempotent', { mishaps: ['hang-after'], spareAttempts: 0 })],
          [
            { kind: 'pause', inTime: true },
            { kind: 'receive', inTime: false },
            step('idempotent', { mishaps: ['hang-after', 'throw-before'], spareAttempts: 0 }),
          ],
        ),
      ],
    },
    blows: { ...CALM, blows: [{ kind: 'kill', at: 1 }], modes: ['worker', 'run', 'run'] },
  },
  {
    what: 'the store’s time, told to a process that stood still for days before it heard of it',
    spec: {
      kind: 'flow',
      body: [
        all([{ kind: 'sleep', ms: 60_000 }], [step('idempotent', { hopeless: true })], [step('once', { ms: 2500 })]),
      ],
    },
    blows: {
      ...CALM,
      blows: [
        { kind: 'freeze', at: 1, for: 53 },
        { kind: 'kill', at: 4 },
      ],
      options: [{ durability: 'sync', frequency: { every: 2 } }],
      delays: [48 * HOUR],
      skews: [HOUR],
    },
  },
  {
    what: 'a process of an erased thread that keeps the lease of the next one of that name',
    spec: {
      kind: 'flow',
      body: [all([step('reconcilable', { reconcile: 'unknown', spareAttempts: 0 })], [{ kind: 'sleep', ms: 60_000 }])],
    },
    blows: {
      ...CALM,
      blows: [{ kind: 'freeze', at: 8, for: 40 }],
      options: [{ durability: 'sync', frequency: 'boundary' }],
      reuse: true,
    },
  },
  {
    what: 'an answer to a gate that a later version of the program no longer has',
    spec: {
      kind: 'graph',
      block: {
        kind: 'sequence',
        blocks: [
          {
            kind: 'sequence',
            blocks: [
              {
                kind: 'node',
                work: {
                  effect: 'once',
                  mishaps: [],
                  hopeless: false,
                  spareAttempts: 2,
                  ms: 0,
                  store: false,
                  shortTtl: false,
                  reconcile: 'unknown',
                  onUnknown: 'pause',
                },
                body: [],
                gate: 'after',
              },
              {
                kind: 'node',
                work: undefined,
                body: [
                  { kind: 'pause', inTime: true, same: true, keyed: true },
                  {
                    kind: 'step',
                    work: {
                      effect: 'read',
                      mishaps: [],
                      hopeless: false,
                      spareAttempts: 2,
                      ms: 0,
                      store: true,
                      shortTtl: false,
                      reconcile: 'unknown',
                      onUnknown: 'pause',
                    },
                    caught: false,
                    longKey: false,
                  },
                ],
                gate: 'none',
              },
            ],
          },
          {
            kind: 'repeat',
            times: 1,
            block: { kind: 'node', work: undefined, body: [{ kind: 'sleep', ms: 50, keyed: false }], gate: 'before' },
          },
        ],
      },
    },
    blows: {
      blows: [
        { kind: 'redeliver', at: 5 },
        { kind: 'replace', at: 9 },
      ],
      modes: ['run-input', 'run', 'run'],
      options: [{ durability: 'sync', frequency: 'step' }],
      delays: [10001],
      secondInput: false,
      skews: [-3600000, 259200000],
      mood: 2,
      reuse: false,
      edits: [
        { from: 1, target: 0, change: { kind: 'ask' } },
        { from: 2, target: 0, change: { kind: 'effect', to: 'idempotent' } },
      ],
    },
  },
  {
    what: 'an answer to a gate before an effect that was begun',
    spec: {
      kind: 'graph',
      block: {
        kind: 'subgraph',
        block: {
          kind: 'node',
          work: {
            effect: 'once',
            mishaps: [],
            hopeless: true,
            spareAttempts: 2,
            ms: 0,
            store: false,
            shortTtl: false,
            reconcile: 'truth',
            onUnknown: 'pause',
          },
          body: [],
          gate: 'none',
        },
      },
    },
    blows: {
      blows: [
        { kind: 'freeze', at: 35, for: 5 },
        { kind: 'replace', at: 36 },
      ],
      modes: ['run', 'run', 'worker'],
      options: [
        { durability: 'sync', frequency: 'boundary' },
        { durability: 'async', frequency: { every: 2 } },
      ],
      delays: [10001],
      secondInput: true,
      skews: [],
      mood: 3,
      reuse: false,
      edits: [
        { from: 2, target: 4, change: { kind: 'effect', to: 'idempotent' } },
        { from: 2, target: 5, change: { kind: 'ask' } },
        { from: 1, target: 5, change: { kind: 'ask' } },
      ],
    },
  },
  {
    what: 'a failed step with something on record that waits for it, resumed many times',
    spec: {
      kind: 'flow',
      body: [
        {
          kind: 'all',
          parts: [
            {
              kind: 'loop',
              times: 1,
              body: [
                {
                  kind: 'step',
                  work: {
                    effect: 'idempotent',
                    mishaps: [],
                    hopeless: false,
                    spareAttempts: 2,
                    ms: 0,
                    store: false,
                    shortTtl: true,
                    reconcile: 'truth',
                    onUnknown: 'fail',
                  },
                  caught: false,
                  longKey: false,
                },
                {
                  kind: 'step',
                  work: {
                    effect: 'once',
                    mishaps: [],
                    hopeless: false,
                    spareAttempts: 2,
                    ms: 40,
                    store: false,
                    shortTtl: false,
                    reconcile: 'unknown',
                    onUnknown: 'pause',
                  },
                  caught: true,
                  longKey: false,
                },
              ],
            },
            {
              kind: 'loop',
              times: 1,
              body: [
                {
                  kind: 'step',
                  work: {
                    effect: 'read',
                    mishaps: [],
                    hopeless: true,
                    spareAttempts: 0,
                    ms: 0,
                    store: false,
                    shortTtl: false,
                    reconcile: 'unknown',
                    onUnknown: 'pause',
                    ownKey: 'own',
                  },
                  caught: true,
                  longKey: false,
                },
                { kind: 'receive', inTime: true, shared: true, keyed: true },
                {
                  kind: 'step',
                  work: {
                    effect: 'reconcilable',
                    mishaps: [],
                    hopeless: false,
                    spareAttempts: 2,
                    ms: 0,
                    store: false,
                    shortTtl: true,
                    reconcile: 'truth',
                    onUnknown: 'pause',
                    ownKey: 'own',
                  },
                  caught: false,
                  longKey: false,
                },
              ],
            },
            {
              kind: 'loop',
              times: 1,
              body: [
                {
                  kind: 'step',
                  work: {
                    effect: 'idempotent',
                    mishaps: [],
                    hopeless: false,
                    spareAttempts: 2,
                    ms: 0,
                    store: true,
                    shortTtl: true,
                    reconcile: 'throws',
                    onUnknown: 'fail',
                  },
                  caught: false,
                  longKey: false,
                },
              ],
            },
          ],
          joined: 'settled',
        },
      ],
    },
    blows: {
      blows: [
        { kind: 'freeze', at: 43, for: 20 },
        { kind: 'kill', at: 11 },
        { kind: 'freeze', at: 25, for: 60 },
        { kind: 'kill', at: 31 },
        { kind: 'freeze', at: 149, for: 5 },
        { kind: 'freeze', at: 27, for: 20 },
        { kind: 'replace', at: 6 },
      ],
      modes: ['run-input', 'run', 'worker'],
      options: [{ durability: 'sync', frequency: { every: 3 } }],
      delays: [172800000],
      secondInput: false,
      skews: [30000],
      mood: 1,
      reuse: false,
      edits: [
        { from: 2, target: 3, change: { kind: 'own-key', to: 'newer' } },
        { from: 3, target: 2, change: { kind: 'order' } },
        { from: 2, target: 4, change: { kind: 'own-key', to: 'new' } },
      ],
    },
  },
  {
    what: 'the answer to a later run, in a process that another has overtaken',
    spec: {
      kind: 'flow',
      body: [
        {
          ...all(
            [step('read', { mishaps: ['not-executed', 'throw-after'], reconcile: 'unknown' })],
            [
              step('reconcilable', { mishaps: ['throw-before', 'hang-after'], ms: 2500, ownKey: 'own' }, true),
              { kind: 'pause', inTime: true, same: false, keyed: false },
            ],
            [
              { kind: 'sleep', ms: 60_000, keyed: false },
              step('reconcilable', { store: true }),
              { kind: 'receive', inTime: true, shared: false, keyed: true },
            ],
          ),
          joined: 'as-is',
        } as StatementSpec,
      ],
    },
    blows: {
      blows: [
        { kind: 'kill', at: 7 },
        { kind: 'answer', at: 36 },
        { kind: 'kill', at: 11 },
        { kind: 'kill', at: 10 },
        { kind: 'freeze', at: 41, for: 60 },
        { kind: 'interrupt', at: 30 },
      ],
      modes: ['worker', 'run', 'run-input'],
      options: [
        { durability: { lag: 1 }, frequency: 'boundary' },
        { durability: { lag: 1 }, frequency: 'step' },
      ],
      delays: [172800000],
      secondInput: true,
      skews: [],
      mood: 1,
      reuse: false,
      edits: [
        { from: 1, target: 1, change: { kind: 'order' } },
        { from: 2, target: 0, change: { kind: 'ask' } },
      ],
    },
  },
  {
    what: 'the answer to a later run, to a question that was on its way when another process took the thread',
    spec: {
      kind: 'flow',
      body: [
        {
          ...all(
            [step('idempotent'), { kind: 'pause', inTime: true, same: false, keyed: true }],
            [
              { kind: 'sleep', ms: 50, keyed: true },
              { kind: 'pause', inTime: true, same: false, keyed: false },
            ],
            [step('reconcilable', { hopeless: true, reconcile: 'unknown' })],
          ),
          joined: 'as-is',
        } as StatementSpec,
      ],
    },
    blows: {
      blows: [
        { kind: 'freeze', at: 20, for: 5 },
        { kind: 'kill', at: 22 },
        { kind: 'freeze', at: 23, for: 5 },
        { kind: 'interrupt', at: 58 },
        { kind: 'freeze', at: 66, for: 20 },
      ],
      modes: ['run'],
      options: [{ durability: 'sync', frequency: 'boundary' }],
      delays: [10_001],
      secondInput: false,
      skews: [],
      mood: 0,
      reuse: false,
      edits: [
        { from: 1, target: 3, change: { kind: 'remove' } },
        { from: 1, target: 0, change: { kind: 'ask' } },
      ],
    },
  },
  {
    what: 'a client that drives a run over and over which stands at a question again that was put in other words',
    spec: {
      kind: 'flow',
      body: [
        {
          ...all(
            [step('read'), { kind: 'think', ms: 900 }, { kind: 'pause', inTime: true, same: false, keyed: true }],
            [step('once', { ms: 2500, store: true }), { kind: 'think', ms: 1500 }],
            [
              { kind: 'pause', inTime: false, same: true, keyed: true },
              step('once', { spareAttempts: 0, reconcile: 'unknown', ownKey: 'own' }, true),
              { kind: 'pause', inTime: true, same: false, keyed: true },
            ],
          ),
          joined: 'as-is',
        } as StatementSpec,
      ],
    },
    blows: {
      blows: [
        { kind: 'signal', at: 28 },
        { kind: 'kill', at: 74 },
        { kind: 'replace', at: 100 },
      ],
      modes: ['run', 'run-input', 'run-input'],
      options: [{ durability: 'sync', frequency: { every: 3 } }],
      delays: [10_001],
      secondInput: false,
      skews: [],
      mood: 1,
      reuse: true,
      edits: [
        { from: 1, target: 2, change: { kind: 'ask' } },
        { from: 1, target: 2, change: { kind: 'effect', to: 'reconcilable' } },
      ],
    },
  },
  {
    what: 'a worker that was overtaken reserves the thread again and again, which it does not run',
    spec: {
      kind: 'agent',
      turns: [
        [
          { work: work('reconcilable', { store: true, reconcile: 'unknown', ownKey: 'own' }), approval: false },
          { work: work('idempotent', { spareAttempts: 0, reconcile: 'throws' }), approval: false },
        ],
      ],
    },
    blows: {
      blows: [
        { kind: 'kill', at: 15 },
        { kind: 'freeze', at: 97, for: 60 },
        { kind: 'freeze', at: 26, for: 5 },
        { kind: 'kill', at: 5 },
        { kind: 'kill', at: 22 },
        { kind: 'replace', at: 2 },
      ],
      modes: ['run-input', 'worker'],
      options: [
        { durability: 'async', frequency: { every: 3 } },
        { durability: { lag: 1 }, frequency: { every: 3 } },
      ],
      delays: [10_001],
      secondInput: false,
      skews: [],
      mood: 0,
      reuse: false,
      edits: [{ from: 3, target: 2, change: { kind: 'rename' } }],
    },
  },
]
