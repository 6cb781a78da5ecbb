import type { Chaos } from './chaos.js'
import type { ProgramSpec } from './spec.js'

/** Programs and blows that once broke a rule, as fast-check had shrunk them. */
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
              {
                kind: 'node',
                body: [
                  {
                    kind: 'step',
                    work: {
                      effect: 'read',
                      mishaps: [],
                      hopeless: false,
                      spareAttempts: 2,
                      ms: 0,
                      store: false,
                      shortTtl: false,
                      reconcile: 'truth',
                      onUnknown: 'pause',
                    },
                    caught: false,
                  },
                ],
                gate: 'none',
              },
              {
                kind: 'node',
                work: {
                  effect: 'idempotent',
                  mishaps: ['throw-before'],
                  hopeless: false,
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
            ],
          },
          {
            kind: 'parallel',
            blocks: [
              {
                kind: 'node',
                work: {
                  effect: 'read',
                  mishaps: [],
                  hopeless: false,
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
              {
                kind: 'node',
                work: {
                  effect: 'read',
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
            ],
          },
          {
            kind: 'node',
            work: {
              effect: 'read',
              mishaps: [],
              hopeless: false,
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
        ],
      },
    } as unknown as ProgramSpec,
    blows: {
      blows: [
        { kind: 'kill', at: 6 },
        { kind: 'second-input', at: 6 },
        { kind: 'cancel', at: 13 },
      ],
      modes: ['run'],
      options: [{ durability: 'sync', frequency: { every: 3 } }],
      delays: [10001],
      secondInput: true,
    } as unknown as Chaos,
  },
]
