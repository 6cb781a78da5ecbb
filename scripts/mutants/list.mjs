// @ts-check
/**
 * @typedef {object} Mutant
 * @property {string} item a number to ask for it by
 * @property {string} what the fault that it brings back
 * @property {readonly { readonly file: string, readonly find: string, readonly replace: string }[]} changes in dist
 * @property {{ readonly histories: 'crashes' | 'changes' | 'deliveries' } | { readonly test: string, readonly name?: string }} by
 */

/** @type {readonly Mutant[]} */
export const MUTANTS = [
  {
    item: '1a',
    what: 'an intent is judged by the kind that the program declares today',
    changes: [
      {
        file: 'runtime/step/ledger.js',
        find: 'this.effect = strictest(work.policy, own);',
        replace: "this.effect = work.policy.effect ?? 'read';",
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '1b',
    what: 'the key that an effect was begun with is taken from the program of today',
    changes: [
      {
        file: 'runtime/step/ledger.js',
        find: 'this.#key = isBegun(own) ? own.key : undefined;',
        replace: 'this.#key = undefined;',
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '1c',
    what: 'a begun effect that the program no longer comes to is forgotten',
    changes: [
      {
        file: 'runtime/step/revisits.js',
        find: 'if (isBegun(record))\n                throw leftBegun(path);',
        replace: 'if (isBegun(record)) continue;',
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '2',
    what: 'a gate is asked although the effect behind it was begun',
    changes: [
      {
        file: 'runtime/engine/graph-engine.js',
        find: 'const begun = this.#isBegun(task);',
        replace: 'const begun = false;',
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '4',
    what: 'the keys of inputs are forgotten after a hundred others',
    changes: [
      {
        file: 'runtime/run/input-keys.js',
        find: 'const own = entryOf(keys, key);',
        replace:
          'const known = Object.values(keys ?? {}).flatMap((bucket) => Object.values(bucket)).length;\n    const own = known > 100 ? undefined : entryOf(keys, key);',
      },
    ],
    by: { histories: 'deliveries' },
  },
  {
    item: '7a',
    what: 'a cancelled run takes the results on record with it',
    changes: [
      {
        file: 'runtime/run/situation.js',
        find: 'const results = holds ? settled.ops : keepResults(state);',
        replace: 'const results = [];',
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '7b',
    what: 'new input that takes the place of a paused run drops the results on record',
    changes: [
      {
        file: 'runtime/run/situation.js',
        find: "ops.push(...keepResults(state), ...cancelRun(state, 'new input was given', now, fold.seq + 2));",
        replace: "ops.push(...cancelRun(state, 'new input was given', now, fold.seq + 2));",
      },
    ],
    by: { histories: 'changes' },
  },
  {
    item: '8',
    what: 'a wait reads a view that lacks the signal it has taken',
    changes: [
      {
        file: 'runtime/run/recorder.js',
        find: 'this.#view = this.#pending.length === 0 ? undefined : new View(this.#claim.log.fold.state, drafts(this.#pending));',
        replace: 'if (this.#pending.length === 0) this.#view = undefined;',
      },
    ],
    by: { histories: 'crashes' },
  },
  {
    item: '13',
    what: 'who waits for a thread waits for ever while input lies behind a failed run',
    changes: [
      {
        file: 'runtime/run/situation.js',
        find: 'return fold.index.wakeAt === null || fold.index.wakeAt > now;',
        replace: 'return inputs.length === 0;',
      },
    ],
    by: { histories: 'crashes' },
  },
  {
    item: '14',
    what: 'an outcome says that its input was refused, though it is queued',
    changes: [
      {
        file: 'runtime/run/given-input.js',
        find: "return at < 0 ? 'refused' : 'queued';",
        replace: "return 'refused';",
      },
    ],
    by: { histories: 'crashes' },
  },
]
