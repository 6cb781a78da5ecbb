// @ts-check
/**
 * @typedef {object} Mutant
 * @property {string} item a number to ask for it by
 * @property {string} what the fault that it brings back
 * @property {readonly { readonly file: string, readonly find: string, readonly replace: string }[]} changes in build
 * @property {string} test a file of tests that notices it
 * @property {string} [name] of the test in it, where the file takes long
 * @property {readonly ('redis' | 'postgres')[]} [needs] the servers that the test needs
 * @property {'crashes' | 'changes' | 'deliveries'} [histories] the kind of the crash model's histories that shows it
 */

/** @type {readonly Mutant[]} */
export const MUTANTS = [
  {
    item: '1a',
    what: 'an intent is judged by the kind that the program declares today',
    changes: [
      {
        file: 'runtime/step/attempt/ledger.js',
        find: 'this.effect = strictest(work.policy, own);',
        replace: "this.effect = work.policy.effect ?? 'read';",
      },
    ],
    test: 'test/runtime/effects/intents.test.ts',
    histories: 'changes',
  },
  {
    item: '1b',
    what: 'the key that an effect was begun with is taken from the program of today',
    changes: [
      {
        file: 'runtime/step/attempt/ledger.js',
        find: 'this.#key = isBegun(own) ? own.key : undefined;',
        replace: 'this.#key = undefined;',
      },
    ],
    test: 'test/runtime/effects/intents.test.ts',
    histories: 'changes',
  },
  {
    item: '1c',
    what: 'a begun effect that the program no longer comes to is forgotten',
    changes: [
      {
        file: 'runtime/step/call/revisits.js',
        find: 'if (isBegun(record) || awaitsChild(record))\n                throw leftBegun(path);',
        replace: 'if (isBegun(record)) continue;',
      },
    ],
    test: 'test/runtime/effects/intents.test.ts',
    histories: 'changes',
  },
  {
    item: '2',
    what: 'a gate is asked although the effect behind it was begun',
    changes: [
      {
        file: 'runtime/engine/node-run.js',
        find: 'const begun = isTaskBegun(this.#scope, task);',
        replace: 'const begun = false;',
      },
    ],
    test: 'test/runtime/pauses/gates-after-crash.test.ts',
    histories: 'changes',
  },
  {
    item: '4',
    what: 'the keys of inputs are forgotten after a hundred others',
    changes: [
      {
        file: 'runtime/run/input/input-keys.js',
        find: 'const own = entryOf(keys, key);',
        replace:
          'const known = Object.values(keys ?? {}).flatMap((bucket) => Object.values(bucket)).length;\n    const own = known > 100 ? undefined : entryOf(keys, key);',
      },
    ],
    test: 'test/runtime/inputs/keys.test.ts',
    histories: 'deliveries',
  },
  {
    item: '7a',
    what: 'a cancelled run takes the results on record with it',
    changes: [
      {
        file: 'runtime/run/state/run-ops.js',
        find: 'const results = holds ? settled.ops : keepResults(state);',
        replace: 'const results = [];',
      },
    ],
    test: 'test/runtime/runs/results-of-ended-runs.test.ts',
    histories: 'changes',
  },
  {
    item: '7b',
    what: 'new input that takes the place of a paused run drops the results on record',
    changes: [
      {
        file: 'runtime/run/request/situation.js',
        find: "ops.push(...keepResults(state), ...cancelRun(state, 'new input was given', now, fold.seq + 1));",
        replace: "ops.push(...cancelRun(state, 'new input was given', now, fold.seq + 1));",
      },
    ],
    test: 'test/runtime/suite-memory.test.ts',
    name: 'kept|reaches the state',
    histories: 'changes',
  },
  {
    item: '8',
    what: 'a wait reads a view that lacks the signal it has taken',
    changes: [
      {
        file: 'runtime/run/record/unwritten.js',
        find: 'this.#view = this.pending.length === 0 ? undefined : new View(this.#log.fold.state, draftsOf(this.pending));',
        replace: 'if (this.pending.length === 0) this.#view = undefined;',
      },
      {
        file: 'runtime/pause/waits.js',
        find: 'if (got !== undefined)\n        return parse(got.result);',
        replace: "if (got !== undefined)\n        return parse(at.records.find(path, 'none')?.result);",
      },
    ],
    test: 'test/runtime/pauses/receive.test.ts',
    histories: 'crashes',
  },
  {
    item: '13',
    what: 'who waits for a thread waits for ever while input lies behind a failed run',
    changes: [
      {
        file: 'runtime/run/state/read-run-state.js',
        find: 'if (isStuck(state))\n        return !isAskedFor(fold, now);',
        replace: 'if (isStuck(state))\n        return inputs.length === 0;',
      },
    ],
    test: 'test/runtime/inputs/outcome-of-input.test.ts',
    histories: 'crashes',
  },
  {
    item: '14',
    what: 'an outcome says that its input was refused, though it is queued',
    changes: [
      {
        file: 'runtime/run/input/given-input.js',
        find: "return at < 0 && !later.some((other) => isInput(input, other)) ? 'refused' : 'queued';",
        replace: "return 'refused';",
      },
    ],
    test: 'test/runtime/inputs/outcome-of-input.test.ts',
    histories: 'crashes',
  },
  {
    item: '3',
    what: 'an effect starts although its lease may be lost',
    changes: [
      {
        file: 'runtime/step/attempt/call-work.js',
        find: '(lease?.isSure ?? true) && !(ledger.unsure && ledger.isForgotten)',
        replace: '!(ledger.unsure && ledger.isForgotten)',
      },
      { file: 'runtime/step/attempt/past-effects.js', find: 'await run.lease?.secure();', replace: 'void 0;' },
    ],
    test: 'test/runtime/effects/lease.test.ts',
    histories: 'crashes',
  },
  {
    item: '5',
    what: 'somebody is asked what became of an attempt that still runs',
    changes: [
      {
        file: 'runtime/step/attempt/ledger.js',
        find: 'const ended = await attempts.ended(this.#name, limit);',
        replace: 'const ended = undefined; void limit;',
      },
    ],
    test: 'test/runtime/effects/timed-out-attempts.test.ts',
    histories: 'crashes',
  },
  {
    item: '6',
    what: 'the keys of an erased thread are used again by the next of that name',
    changes: [
      {
        file: 'runtime/step/record/hash-value.js',
        find: 'if (run?.incarnation !== undefined)',
        replace: 'if (false)',
      },
    ],
    test: 'test/runtime/effects/keys-after-erasure.test.ts',
    histories: 'crashes',
  },
  {
    item: '9',
    what: 'waits without a key are told apart by who comes first',
    changes: [
      {
        file: 'runtime/pause/wait-order.js',
        find: 'if ((counts.get(name) ?? 0) !== place && !isAlone)',
        replace: 'if (false)',
      },
    ],
    test: 'test/runtime/pauses/waits.test.ts',
    histories: 'crashes',
  },
  {
    item: '10',
    what: 'a fork takes what another branch read, though its own past differs',
    changes: [
      {
        file: 'runtime/run/record/recorded-reads.js',
        find: "(inputHash !== 'none' || isSamePast)",
        replace: "(inputHash !== 'none' || isSamePast || true)",
      },
    ],
    test: 'test/time-travel/recorded-reads.test.ts',
  },
  {
    item: '10b',
    what: 'a fork takes a node that asked somebody on the other branch with the answer from there',
    changes: [
      { file: 'runtime/run/record/records.js', find: ' || did.has(path))', replace: ')' },
      { file: 'runtime/run/record/recorded-reads.js', find: '!sees.isUnderWay() && ', replace: '' },
    ],
    test: 'test/time-travel/recorded-reads.test.ts',
  },
  {
    item: '11',
    what: 'a node can change a date of the state in place',
    changes: [
      {
        file: 'runtime/program/state/shown-state.js',
        find: 'this.#showList(key, value) : showValue(value)',
        replace: 'this.#showList(key, value) : value',
      },
    ],
    test: 'test/runtime/runs/frozen-values.test.ts',
    histories: 'crashes',
  },
  {
    item: '12',
    what: 'a failed run whose error lost its cause fails again for ever',
    changes: [
      {
        file: 'runtime/step/record/failed-steps.js',
        find: 'return { retry: retry.map(({ at }) => at), doubt: doubt.map(({ at }) => at) };',
        replace: 'return { retry: [], doubt: [] };',
      },
    ],
    test: 'test/runtime/runs/resume.test.ts',
    histories: 'crashes',
  },
  {
    item: '15',
    what: 'waits go by the clock of whoever asks',
    changes: [
      {
        file: 'log/store-clock.js',
        find: 'if (this.#ask === undefined)\n            return this.#clock.now();',
        replace: 'if (true)\n            return this.#clock.now();',
      },
    ],
    test: 'test/log/store-clock.test.ts',
    histories: 'crashes',
  },
  {
    item: '16',
    what: 'a program that thinks for long between two steps is given up',
    changes: [
      {
        file: 'runtime/step/call/activity.js',
        find: 'const RETURN_MS = 10 * 60_000;',
        replace: 'const RETURN_MS = 400;',
      },
    ],
    test: 'test/runtime/effects/order-after-resume.test.ts',
    histories: 'crashes',
  },
  {
    item: '18',
    what: 'two long keys that differ at the end are one',
    changes: [
      {
        file: 'runtime/step/record/step-records.js',
        find: 'return { text: `${cut}#${hash}`, cut };',
        replace: 'return { text: cut };',
      },
    ],
    test: 'test/runtime/effects/step-keys.test.ts',
    histories: 'crashes',
  },
  {
    item: '23',
    what: 'a thread is blamed for crashes that it shared with others',
    changes: [
      {
        file: 'runtime/run/request/situation.js',
        find: 'if (claims >= maxClaims && alone >= 1)',
        replace: 'if (claims >= maxClaims)',
      },
    ],
    test: 'test/runtime/workers/poison.test.ts',
  },
  {
    item: '25',
    what: 'a thread is left alone for longer and longer because the store failed',
    changes: [
      {
        file: 'runtime/worker/worker-rests.js',
        find: 'if (this.storeFailed(error))\n            return;',
        replace: 'this.storeFailed(error);',
      },
    ],
    test: 'test/runtime/workers/store-outage.test.ts',
  },
  {
    item: '29',
    what: 'how old open keys are is forgotten when a program came between that fails or does not fit',
    changes: [
      {
        file: 'runtime/run/hold/conclude.js',
        find: "(state.ahead === true || driven.status === 'failed')",
        replace: '(state.ahead === true)',
      },
    ],
    test: 'test/runtime/effects/key-ttl.test.ts',
  },
  {
    item: '30',
    what: 'a program that catches that a step is another one now completes, and leaves a begun effect behind',
    changes: [{ file: 'runtime/step/call/requests.js', find: 'this.revisits.mismatch(error);', replace: 'void 0;' }],
    test: 'test/runtime/simulation.test.ts',
    name: 'found before: a begun effect that comes back',
  },
  {
    item: '31',
    what: 'an unchanged program is called another one when one branch fails before the others have come back',
    changes: [
      {
        file: 'runtime/step/call/requests.js',
        find: 'if (inCompany || retry.length + doubt.length > 0)',
        replace: 'if (retry.length + doubt.length < 0)',
      },
    ],
    test: 'test/runtime/effects/intents.test.ts',
  },
  {
    item: '32',
    what: 'what time it is by the store is believed however late the reply was heard',
    changes: [{ file: 'log/store-clock.js', find: 'if (took < LONG_LOOK_MS)', replace: 'if (true)' }],
    test: 'test/log/store-clock.test.ts',
  },
  {
    item: '9b',
    what: 'the first wait of a name gets the record of another branch',
    changes: [
      {
        file: 'runtime/step/call/wait-places.js',
        find: 'past !== undefined && record.past !== undefined && past !== record.past',
        replace: 'false',
      },
    ],
    test: 'test/runtime/pauses/waits.test.ts',
  },
  {
    item: '12b',
    what: 'a failure is told again at once, whatever else the program is busy with',
    changes: [{ file: 'runtime/step/call/revisits.js', find: 'hadTime || this.#hasGoneOn(turn)', replace: 'true' }],
    test: 'test/runtime/runs/resume.test.ts',
  },
  {
    item: '34',
    what: 'how old open keys are is forgotten when a wait came between',
    changes: [
      {
        file: 'runtime/step/call/wait-places.js',
        find: 'return record === undefined ? this.openSince(isLive) : record.since;',
        replace: 'return undefined;',
      },
    ],
    test: 'test/runtime/effects/key-ttl.test.ts',
  },
  {
    item: '35',
    what: 'a gate is asked before it is known what became of an effect that the store may have lost',
    changes: [
      {
        file: 'runtime/engine/node-run.js',
        find: 'const losing = this.#findLost(state);',
        replace: 'const losing = undefined;',
      },
    ],
    test: 'test/runtime/pauses/gates-after-crash.test.ts',
  },
  {
    item: '36',
    what: 'a process renews the lease of a later log of the same name',
    changes: [
      {
        file: 'drivers/memory/memory-driver.js',
        find: 'found?.incarnation !== incarnation || found.owner === null',
        replace: 'found === undefined || found.owner === null',
      },
    ],
    test: 'test/drivers/memory.test.ts',
    name: 'later log of the same name',
  },
  {
    item: '17a',
    what: 'closing leaves the workers running',
    changes: [
      {
        file: 'holdfast/holdfast.js',
        find: 'await Promise.all([...workers.running].map((worker) => worker.stop()));',
        replace: '',
      },
    ],
    test: 'test/runtime/workers/close.test.ts',
  },
  {
    item: '17b',
    what: 'a signal has workers try a failed run each time',
    changes: [
      {
        file: 'runtime/pause/waits.js',
        find: "if (run?.status !== 'running')\n        return false;",
        replace: '',
      },
    ],
    test: 'test/runtime/workers/wake-conditions.test.ts',
  },
  {
    item: '18b',
    what: 'a key that two questions have asks each of them for ever',
    changes: [
      {
        file: 'runtime/step/call/wait-places.js',
        find: 'if (before !== asked) {',
        replace: 'if (false) {',
      },
    ],
    test: 'test/runtime/effects/step-keys.test.ts',
  },
  {
    item: '20',
    what: 'the copy of a first checkpoint loses its values',
    changes: [
      {
        file: 'adapters/langgraph/saver/plan-put.js',
        find: "(parent === undefined && metadata.source === 'fork')",
        replace: 'false',
      },
    ],
    test: 'test/adapters/langgraph/copied-checkpoints.test.ts',
  },
  {
    item: '22',
    what: 'what a server says of its tools is believed unasked',
    changes: [
      {
        file: 'agent/tools/mcp-tools.js',
        find: 'options.trustHints === true',
        replace: 'true',
      },
    ],
    test: 'test/agent/mcp.test.ts',
  },
  {
    item: '28',
    what: 'a signal with a key is received again',
    changes: [
      {
        file: 'runtime/pause/waits.js',
        find: 'if (place && state.signalKeys?.[place[0]]?.[place[1]] !== undefined)\n            return undefined;',
        replace: '',
      },
    ],
    test: 'test/runtime/suite-memory.test.ts',
    name: 'receives a signal once',
  },
  {
    item: '37a',
    what: 'a lease holds on while the machine sleeps, by the clock of a server',
    changes: [
      {
        file: 'log/write/claim-options.js',
        find: 'wall: clock.wall()',
        replace: 'wall: clock.now()',
      },
    ],
    test: 'test/runtime/effects/lease-after-sleep.test.ts',
  },
  {
    item: '38',
    what: 'branches in another order get each other’s sleeps',
    changes: [
      {
        file: 'runtime/step/call/wait-places.js',
        find: 'if (isOther && wait.hasBranches)',
        replace: 'if (false)',
      },
    ],
    test: 'test/runtime/pauses/waits.test.ts',
  },
  {
    item: '38b',
    what: 'branches in another order are asked again what was answered',
    changes: [
      {
        file: 'runtime/step/call/wait-places.js',
        find: 'if (moved && wait.hasBranches)',
        replace: 'if (false)',
      },
    ],
    test: 'test/runtime/pauses/waits.test.ts',
  },
  {
    item: '39',
    what: 'a node of another kind forgets what it had begun',
    changes: [
      {
        file: 'runtime/engine/node-run.js',
        find: 'checkLeft(this.#scope, this.node, task);',
        replace: 'void task;',
      },
    ],
    test: 'test/runtime/effects/intents.test.ts',
  },
  {
    item: '40',
    what: 'a transaction takes the place of an effect that was begun',
    changes: [
      {
        file: 'runtime/step/perform-transaction.js',
        find: 'await findBegun(run, work)',
        replace: 'undefined',
      },
    ],
    test: 'test/runtime/suite-sqlite.test.ts',
    name: 'find out first',
  },
  {
    item: '41',
    what: 'a branch of a node that failed goes on beside the next attempt',
    changes: [
      {
        file: 'runtime/step/call/make-context.js',
        find: 'call !== requests.calls || call === requests.endedCall',
        replace: 'call !== requests.calls',
      },
    ],
    test: 'test/runtime/effects/unhandled-rejections.test.ts',
  },
  {
    item: '1d',
    what: 'a step that was tried again before goes back to a key that it had given up',
    changes: [
      {
        file: 'runtime/step/record/failed-steps.js',
        find: 'return generation === undefined ? remove(at)',
        replace: 'return true ? remove(at)',
      },
    ],
    test: 'test/runtime/effects/retry-keys.test.ts',
    histories: 'changes',
  },
  {
    item: '17c',
    what: 'whoever aborts a run waits as long as the store hangs',
    changes: [
      {
        file: 'runtime/run/request/stop-in-time.js',
        find: 'signal === undefined ? running',
        replace: 'true ? running',
      },
    ],
    test: 'test/runtime/runs/abort.test.ts',
  },
  {
    item: '19a',
    what: 'a record that can’t be stored fails the signal that is received beside it',
    changes: [
      {
        file: 'runtime/run/record/exclusive-writes.js',
        find: 'if (!isRefusal(error) || !this.#unwritten.pending.some(({ step }) => step))',
        replace: 'if (true)',
      },
    ],
    test: 'test/runtime/runs/unrecordable-results.test.ts',
  },
  {
    item: '19b',
    what: 'a record that can’t be stored fails the steps that are written with it',
    changes: [
      {
        file: 'runtime/run/record/refused-writes.js',
        find: 'if (notes.filter(({ step }) => step).length > 1)',
        replace: 'if (false)',
      },
    ],
    test: 'test/runtime/runs/unrecordable-results.test.ts',
  },
  {
    item: '21',
    what: 'a checkpoint id that is no text is looked for',
    changes: [
      {
        file: 'adapters/langgraph/saver/names.js',
        find: "if (typeof id === 'string')\n        return id;",
        replace: 'return id;',
      },
    ],
    test: 'test/adapters/langgraph/queries.test.ts',
  },
  {
    item: '22b',
    what: 'a mock that can only generate fails',
    changes: [
      {
        file: 'agent/model/attempt/model-attempt.js',
        find: "if (isMissing && typeof model.doGenerate === 'function')",
        replace: 'if (false)',
      },
    ],
    test: 'test/agent/tool-events.test.ts',
  },
  {
    item: '24a',
    what: 'a run that is given up because the store refuses its records counts as a crash',
    changes: [
      { file: 'runtime/run/hold/give-up.js', find: 'claims > 0 ?', replace: 'false ?' },
      { file: 'runtime/run/hold/give-up.js', find: 'alone > 0 && wasAlone ?', replace: 'false ?' },
    ],
    test: 'test/runtime/workers/store-outage.test.ts',
  },
  {
    item: '24b',
    what: 'a Redis whose memory is full takes claims, and refuses what follows',
    changes: [
      {
        file: 'drivers/redis/scripts/include/index-members.lua',
        find: "  if #new > 0 then redis.call('ZADD', index, unpack(with_scores(new))) end\n",
        replace: "  redis.call('ZREM', index, unpack(old))\n  redis.call('ZADD', index, unpack(with_scores(new)))\n",
      },
    ],
    test: 'test/drivers/redis-faults.test.ts',
    name: 'when its memory is full',
    needs: ['redis'],
  },
  {
    item: '26',
    what: 'one lost connection fails what is sent to a thread',
    changes: [{ file: 'log/write/retry.js', find: 'if (!isPassing(error) ||', replace: 'if (true ||' }],
    test: 'test/runtime/workers/lost-connection.test.ts',
  },
  {
    item: '26b',
    what: 'one lost connection fails who reads a history',
    changes: [
      {
        file: 'log/read/log-past.js',
        find: 'const read = await retry(environment, readOne);',
        replace: 'const read = await readOne(0);',
      },
    ],
    test: 'test/runtime/workers/lost-connection.test.ts',
  },
  {
    item: '27',
    what: 'who has not seen the records that a Redis lost goes on as if there had been none',
    changes: [
      {
        file: 'runtime/run/request/gap.js',
        find: 'runsOf(state).filter(',
        replace: '[].filter(',
      },
    ],
    test: 'test/runtime/effects/redis-data-loss.test.ts',
    needs: ['redis'],
  },
  {
    item: '42',
    what: 'what holds a result that is not stored yet is stored with a mark in its place',
    changes: [
      {
        file: 'codec/value.js',
        find: 'const json = joinWritten(stringify(encoder.wire, limits), encoder.written);',
        replace: 'const json = stringify(encoder.wire, limits);',
      },
    ],
    test: 'test/runtime/runs/frozen-values.test.ts',
  },
  {
    item: '43',
    what: 'a process that was overtaken hands the answer to a later run to the function of its own',
    changes: [{ file: 'runtime/step/call/make-context.js', find: 'if (run.isOvertaken)', replace: 'if (false)' }],
    test: 'test/runtime/simulation.test.ts',
    name: 'the answer to a later run, in a process',
  },
  {
    item: '43b',
    what: 'a question that is on its way when another process takes the thread gets the answer to a later run',
    changes: [{ file: 'runtime/pause/asking.js', find: 'if (isOvertaken)', replace: 'if (false)' }],
    test: 'test/runtime/simulation.test.ts',
    name: 'the answer to a later run, to a question',
  },
  {
    item: '19c',
    what: 'an update that the backend refuses fails those that were sent with it',
    changes: [
      { file: 'log/write/log-writer.js', find: 'if (members.length > 1 && isRefusal(error))', replace: 'if (false)' },
    ],
    test: 'test/log/refused-updates.test.ts',
  },
  {
    item: '28b',
    what: 'each run that shares a signal listens to it',
    changes: [
      { file: 'core/async/on-abort.js', find: 'WAITING.get(signal) ?? listen(signal)', replace: 'listen(signal)' },
    ],
    test: 'test/runtime/pauses/abort-signals.test.ts',
  },
  {
    item: '44',
    what: 'a question that the program no longer comes to keeps its thread awake once it is answered or has expired',
    changes: [{ file: 'runtime/run/state/read-run-state.js', find: 'run.passed?.[id] === what', replace: 'false' }],
    test: 'test/runtime/pauses/unreached-questions.test.ts',
  },
  {
    item: '15b',
    what: 'input is due by the clock of whoever sends it',
    changes: [
      {
        file: 'runtime/run/input/enqueue.js',
        find: ': DUE }),',
        replace: ': clock.now() }),',
      },
    ],
    test: 'test/runtime/suite-memory.test.ts',
    name: 'runs input at once that came from',
  },
  {
    item: '17d',
    what: 'a known key is refused once the entry that tells its outcome was pruned',
    changes: [
      {
        file: 'runtime/run/request/answer-request.js',
        find: 'const gone = async () => prunedOutcome(request.key, await showFoldOrAsIs(request.plan, log.fold), ended, restart);',
        replace: "const gone = async () => { throw new Error('not-found'); };",
      },
    ],
    test: 'test/runtime/inputs/keys.test.ts',
  },
  {
    item: '18c',
    what: 'a signal is looked for among what every object has',
    changes: [
      {
        file: 'runtime/run/state/read-run-state.js',
        find: 'return Object.hasOwn(signals, name) ? (signals[name] ?? []) : [];',
        replace: 'return signals[name] ?? [];',
      },
    ],
    test: 'test/runtime/effects/step-keys.test.ts',
  },
  {
    item: '21b',
    what: 'a task that is no text is stored under what it is not',
    changes: [
      {
        file: 'adapters/langgraph/saver/names.js',
        find: "if (typeof taskId === 'string' && taskId !== '')",
        replace: 'if (true)',
      },
    ],
    test: 'test/adapters/langgraph/queries.test.ts',
  },
  {
    item: '21c',
    what: 'an unknown thread is looked for three times',
    changes: [
      {
        file: 'adapters/langgraph/saver/branches.js',
        find: 'if ((await this.logs.known(threadId, branch)) === undefined)\n                continue;',
        replace: '',
      },
    ],
    test: 'test/adapters/langgraph/queries.test.ts',
  },
  {
    item: '21d',
    what: 'a store does not show how it searches',
    changes: [
      {
        file: 'adapters/langgraph/store/store.js',
        find: 'return this.#indexConfig;',
        replace: 'return undefined;',
      },
    ],
    test: 'test/adapters/langgraph/queries.test.ts',
  },
  {
    item: '22c',
    what: 'of what a trusted server says only that a tool reads is heard',
    changes: [
      {
        file: 'agent/tools/mcp-tools.js',
        find: "annotations?.idempotentHint === true ? 'idempotent' : 'once'",
        replace: "'once'",
      },
    ],
    test: 'test/agent/mcp.test.ts',
  },
  {
    item: '22d',
    what: 'the calls of tools are no events',
    changes: [
      {
        file: 'agent/turn.js',
        find: "if (part.type === 'tool-call') {",
        replace: 'if (false) {',
      },
    ],
    test: 'test/agent/tool-events.test.ts',
  },
  {
    item: '22e',
    what: 'messages of a page are refused',
    changes: [
      {
        file: 'agent/messages/read-input.js',
        find: 'if (all.every(isUiMessage))',
        replace: 'if (false)',
      },
    ],
    test: 'test/agent/input.test.ts',
  },
  {
    item: '25b',
    what: 'a renewal that lands late brings a lease back that was let go',
    changes: [
      {
        file: 'runtime/worker/lease-keeper.js',
        find: 'if (this.#renewing)\n                await this.#renewing;',
        replace: '',
      },
    ],
    test: 'test/runtime/workers/lease-keeper.test.ts',
  },
  {
    item: '45',
    what: 'a run begins that nobody awaits anymore',
    changes: [
      {
        file: 'runtime/run/hold/begin.js',
        find: 'if (await isStillAwaited(environment, key, parent))',
        replace: 'if (true)',
      },
    ],
    test: 'test/runtime/children/orphans.test.ts',
  },
  {
    item: '46',
    what: 'the end of a run does not wake the one that awaits it',
    changes: [
      {
        file: 'runtime/child/run-errands.js',
        find: '...(isAwaited && !state.parked ? { index: { wakeAt: DUE } } : {}),',
        replace: '',
      },
    ],
    test: 'test/runtime/children/random.test.ts',
  },
  {
    item: '47',
    what: 'a run that is begun again gets another thread',
    changes: [
      {
        file: 'runtime/child/await-child.js',
        find: 'const known = isBegun ? run.state.children?.[name] : undefined;',
        replace: 'const known = isBegun ? { thread: `${run.state.children?.[name]?.thread}-again` } : undefined;',
      },
    ],
    test: 'test/runtime/children/random.test.ts',
  },
  {
    item: '48',
    what: 'a malformed branch in a path leaves a rejection that ends the server',
    changes: [
      {
        file: 'server/native/thread-routes.js',
        find: 'const view = viewOf(call);',
        replace: 'const view = { branches: () => viewOf(call).branches() };',
      },
    ],
    test: 'test/server/attacks.test.ts',
    name: 'leaves nothing unhandled',
  },
  {
    item: '49',
    what: 'what a person says that a stage returned is taken as it is',
    changes: [
      {
        file: 'pipeline/run/batch-unit.js',
        find: 'return this.#readRecorded(stage, recorded, items);',
        replace: 'return recorded;',
      },
    ],
    test: 'test/pipeline/told-results.test.ts',
  },
]
