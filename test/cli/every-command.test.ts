import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { openHoldfast } from 'holdfast'
import { COMMANDS } from '#src/cli/commands.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backendsBehindDoors, durableBackends } from '../support/backends.js'
import { holdfast, pipelines, programs } from './command.js'
import { counter, returns } from './programs.mjs'

/** What each command says to a person, to a program, and to somebody who got it wrong. */
interface Case {
  readonly plain: readonly [args: readonly string[], says: RegExp, code?: number]
  readonly json: readonly [args: readonly string[], holds: object, code?: number]
  readonly wrong: readonly [args: readonly string[], code: number, says: string]
}

const backends = await backendsBehindDoors()
const folder = mkdtempSync(join(tmpdir(), 'holdfast-every-command-'))
const smallDemo = ['demo', '--sessions', '1', '--workers', '1', '--kill-every', '0s', '--latency', '1ms', '--folder']
const returnsRun = ['run', programs, '--program', 'returns']

/** As the official SQLite saver of LangGraph.js leaves it: two checkpoints, and a write that waits for a third. */
const langgraph = join(folder, 'langgraph.db')

function makeLangGraph(): void {
  const db = new DatabaseSync(langgraph)
  db.exec(`CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT,
      type TEXT, checkpoint BLOB, metadata BLOB);
    CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT,
      type TEXT, value BLOB)`)
  const insert = db.prepare("INSERT INTO checkpoints VALUES ('t', '', ?, ?, 'json', ?, ?)")
  for (const [step, id] of ['1ef4f797-8335-6428-8001-8a1503f9b875', '1ef4f797-8335-6428-8002-8a1503f9b875'].entries()) {
    const versions = { n: step + 1 }
    const checkpoint = {
      v: 4,
      id,
      ts: '2026-01-01',
      channel_values: { n: step },
      channel_versions: versions,
      versions_seen: {},
    }
    const parent = step === 0 ? null : '1ef4f797-8335-6428-8001-8a1503f9b875'
    insert.run(id, parent, JSON.stringify(checkpoint), JSON.stringify({ source: 'loop', step, parents: {} }))
  }
  db.exec("INSERT INTO writes VALUES ('t', '', '1ef4f797-8335-6428-8002-8a1503f9b875', 'task', 0, 'n', 'json', '2')")
  db.close()
}
makeLangGraph()

/** A store of its own whose values are encrypted. */
const keys = { current: 'k1', masters: { k1: Buffer.alloc(32, 7).toString('base64') } }
const keysConfig = join(folder, 'keys.config.mjs')
writeFileSync(keysConfig, `export default { options: { keys: ${JSON.stringify(keys)} } }`)
const keyed = ['--config', keysConfig, '--store', `sqlite:${join(folder, 'keyed.db')}`]

const archiveIn = ['--archive', `file:${join(folder, 'archive')}`]

/** Stands for the url of the store that all commands of a backend work on. */
const STORE = '<store>'

const CASES: Readonly<Record<string, Case>> = {
  init: {
    plain: [['init', join(folder, 'one'), '--no-install'], /^package\.json\n(.+\n)*src\/agent\.ts\n/],
    json: [['init', join(folder, 'two'), '--no-install'], { installed: false, files: expect.anything() }],
    wrong: [['init', join(folder, 'three'), '--name', 'No Name'], 2, `"No Name" can't name a package`],
  },
  demo: {
    plain: [[...smallDemo, join(folder, 'day-one')], /completed/],
    json: [[...smallDemo, join(folder, 'day-two')], { sessions: 1, completed: 1, lost: 0, doubled: 0, kills: 0 }],
    wrong: [[...smallDemo, join(folder, 'day-three'), '--lease', '1ms'], 2, '--lease is below 100ms.'],
  },
  run: {
    plain: [[...returnsRun, '--thread', 'new-1', '--input', '{"orderId":"A"}'], /"opened": "RET-A"/],
    json: [
      [...returnsRun, '--thread', 'new-2', '--input', '{"orderId":"B","price":900}'],
      { status: 'paused', id: 'new-2', pauses: [{ kind: 'question' }] },
      7,
    ],
    wrong: [[...returnsRun, '--thread', 'new-3', '--busy', 'queu'], 2, '--busy is "queu"; did you mean queue?'],
  },
  enqueue: {
    plain: [['enqueue', programs, '--program', 'returns', '--thread', 'e-1', '--text', 'x'], /^e-1 queued as /],
    json: [
      [
        'enqueue',
        programs,
        '--program',
        'returns',
        '--thread',
        'e-2',
        '--text',
        'x',
        '--key',
        'k',
        '--run-at',
        '2099-01-01',
      ],
      { thread: 'e-2', input: 'queued', ended: false },
    ],
    wrong: [['enqueue', programs, '--program', 'returns', '--text', 'x', '--run-at', 'soon'], 2, 'is not a time'],
  },
  worker: {
    plain: [['worker', programs, '--poll', '20ms'], /^$/],
    json: [['worker', programs, '--poll', '20ms'], { type: 'ready' }],
    wrong: [['worker', programs, '--concurrency', 'all'], 2, '--concurrency is "all"'],
  },
  'schedule set': {
    plain: [
      ['schedule', 'set', programs, 'nightly', '--program', 'returns', '--cron', '0 2 * * *', '--input', '{}'],
      /^nightly: 0 2 \* \* \*, next \d{4}-\d\d-\d\dT02:00:00Z\n$/,
    ],
    json: [
      ['schedule', 'set', programs, 'often', '--program', 'returns', '--every', '1h', '--input', '{"orderId":"A"}'],
      { name: 'often', everyMs: 3_600_000, input: { orderId: 'A' }, started: 0, paused: false },
    ],
    wrong: [['schedule', 'set', programs, 'x', '--program', 'returns', '--cron', 'at two'], 2, 'not a cron expression'],
  },
  workers: {
    plain: [['workers'], /^worker\thost\tpid\t[^]*w-1\thost-1\t41\t.*\treturns 1\.0\.0\t2\/10\trunning\t/],
    json: [
      ['workers'],
      { workers: expect.arrayContaining([expect.objectContaining({ name: 'w-2', state: 'dead', busy: 3 })]) },
    ],
    wrong: [['workers', '--all'], 2, "Unknown option '--all'"],
  },
  'schedule list': {
    plain: [['schedule', 'list'], /^schedule\t[^]*nightly\treturns\t0 2 \* \* \*\tnext /],
    json: [['schedule', 'list'], { schedules: expect.arrayContaining([expect.objectContaining({ name: 'often' })]) }],
    wrong: [['schedule', 'lists'], 2, "Unknown command 'lists'"],
  },
  'schedule pause': {
    plain: [['schedule', 'pause', 'nightly'], /^nightly: 0 2 \* \* \*, paused\n$/],
    json: [['schedule', 'pause', 'often'], { name: 'often', paused: true, next: null }],
    wrong: [['schedule', 'pause', 'never'], 3, 'no schedule "never"'],
  },
  'schedule resume': {
    plain: [['schedule', 'resume', 'nightly'], /^nightly: .*, next /],
    json: [['schedule', 'resume', 'often'], { name: 'often', paused: false }],
    wrong: [['schedule', 'resume', 'never'], 3, 'no schedule "never"'],
  },
  'schedule trigger': {
    plain: [['schedule', 'trigger', 'nightly'], /^nightly: .*, next /],
    json: [['schedule', 'trigger', 'often'], { name: 'often' }],
    wrong: [['schedule', 'trigger', 'never'], 3, 'no schedule "never"'],
  },
  'schedule delete': {
    plain: [['schedule', 'delete', 'nightly'], /^deleted nightly\n$/],
    json: [['schedule', 'delete', 'often'], { schedule: 'often', deleted: true }],
    wrong: [['schedule', 'delete', 'never'], 3, 'no schedule "never"'],
  },
  studio: {
    plain: [['studio', '--port', '0'], /^Studio: http:\/\/127\.0\.0\.1:\d+\/studio#token=hf_[\w-]+\n$/],
    json: [['studio', programs, '--port', '0'], { type: 'ready', token: expect.stringMatching(/^hf_/) }],
    wrong: [['studio', '--port', '70000'], 2, '--port is "70000"'],
  },
  serve: {
    plain: [['serve', programs, '--port', '0'], /^Listening on http:\/\/127\.0\.0\.1:\d+\nToken: hf_[\w-]+\n$/],
    json: [['serve', programs, '--port', '0'], { type: 'ready', token: expect.stringMatching(/^hf_/) }],
    wrong: [['serve', programs, '--host', '0.0.0.0'], 2, 'can be reached from other machines'],
  },
  'pipeline run': {
    plain: [
      ['pipeline', 'run', pipelines],
      /^pipeline: +notes\nstatus: +completed\nsuccessful: +2\n(.+\n)*chunks: +3\n/,
    ],
    json: [['pipeline', 'run', pipelines], { pipeline: 'notes', status: 'completed', skipped: 2, failed: 0 }],
    wrong: [['pipeline', 'run', programs], 2, 'exports no pipeline'],
  },
  'pipeline status': {
    plain: [['pipeline', 'status', pipelines], /^pipeline: +notes\nstatus: +running\ndocuments: +2\ndone: +2\n/],
    json: [['pipeline', 'status', pipelines], { pipeline: 'notes', documents: 2, done: 2, failures: [] }],
    wrong: [['pipeline', 'status', pipelines, '--pipeline', 'nots'], 3, 'exports no pipeline "nots"'],
  },
  'pipeline retry': {
    plain: [['pipeline', 'retry', pipelines], /^pipeline: +notes\nstatus: +completed\nsuccessful: +0\n/],
    json: [['pipeline', 'retry', pipelines], { pipeline: 'notes', status: 'completed', successful: 0 }],
    wrong: [['pipeline', 'retry', 'nothing.mjs'], 3, 'There is no file nothing.mjs'],
  },
  'pipeline pause': {
    plain: [['pipeline', 'pause', pipelines, '--by', 'ada'], /^notes paused\n$/],
    json: [['pipeline', 'pause', pipelines], { pipeline: 'notes', status: 'paused' }],
    wrong: [['pipeline', 'pause'], 2, 'file'],
  },
  'pipeline resume': {
    plain: [['pipeline', 'resume', pipelines], /^notes running\n$/],
    json: [['pipeline', 'resume', pipelines], { pipeline: 'notes', status: 'running' }],
    wrong: [['pipeline', 'resume', pipelines, '--pipelin', 'x'], 2, 'Did you mean --pipeline?'],
  },
  'pipeline cancel': {
    plain: [['pipeline', 'cancel', pipelines], /^notes cancelled\n$/],
    json: [['pipeline', 'cancel', pipelines], { pipeline: 'notes', status: 'cancelled' }],
    wrong: [['pipeline', 'cancel', programs], 2, 'exports no pipeline'],
  },
  threads: {
    plain: [['threads', '--program', 'counter'], /^thread\tbranch\tstatus\t.*\nc-1\tmain\tcompleted\t/],
    json: [['threads', '--tag', 'gold'], { threads: [{ id: 'c-1', tags: ['gold', 'old'], status: 'completed' }] }],
    wrong: [['threads', '--status', 'complete'], 2, 'No thread has the status "complete"; did you mean completed?'],
  },
  show: {
    plain: [['show', 'c-1'], /^thread: +c-1\n(.+\n)*status: +completed\n[^]*"count": 10/],
    json: [['show', 'ask-1'], { id: 'ask-1', status: 'waiting_human', pauses: [{ kind: 'question' }] }],
    wrong: [['show', 'c1'], 3, 'No thread c1; did you mean c-1?'],
  },
  history: {
    plain: [['history', 'c-1'], /^main {2}completed {2}\d entries\n├─ +2 {2}step +main~2~\w{12} {2}\d+ B {2}2[^]*└─/],
    json: [['history', 'c-1', '--limit', '1'], { id: 'c-1', branches: [{ name: 'main', more: true }] }],
    wrong: [['history', 'c-1', '--branch', 'mian'], 3, 'has no branch "mian"; did you mean main?'],
  },
  state: {
    plain: [['state', 'c-1', '--at', '1'], /^\{\n {2}"count": 1,/],
    json: [['state', 'c-1'], { thread: 'c-1', state: { count: 10, seen: ['one', 'two'] } }],
    wrong: [['state', 'c-1', '--at', 'glod'], 3, 'has no checkpoint "glod"; did you mean gold?'],
  },
  diff: {
    plain: [['diff', 'c-1'], /^~ \$\.count: 1 -> 10\n\+ \$\.seen\[1\]: two\n$/],
    json: [['diff', 'c-1', 'first', 'head'], { thread: 'c-1', differences: expect.anything() }],
    wrong: [['diff', 'c-1', '~40'], 3, 'has no checkpoint "~40"'],
  },
  tail: {
    plain: [
      ['tail', 'c-1'],
      /^run +started\nstep +0:one completed \d+ms\nstep +1:two completed \d+ms\nrun +completed\n$/,
    ],
    json: [['tail', 'c-1', '--since', '1'], { type: 'step', status: 'completed' }],
    wrong: [['tail', 'c-1', '--lines', '0'], 2, '--lines is "0"'],
  },
  fork: {
    plain: [['fork', 'c-1', '--at', '1', '--name', 'other'], /^other\n$/],
    json: [['fork', 'c-1', '--name', 'third', '--set', 'count=5'], { thread: 'c-1', branch: 'third' }],
    wrong: [['fork', 'c-1', '--reads', 'never'], 2, '--reads is "never"'],
  },
  resume: {
    plain: [['resume', programs, 'f-1'], /^$/, 1],
    json: [
      ['resume', programs, '--all', '--program', 'returns', '--status', 'failed'],
      { resumed: [{ thread: 'f-1' }] },
      1,
    ],
    wrong: [['resume', programs], 2, 'Name a thread, or pass --all.'],
  },
  replay: {
    plain: [['replay', programs, 'c-1'], /^identical: 2 recorded steps replayed\n$/],
    json: [['replay', programs, 'c-1'], { thread: 'c-1', status: 'identical', steps: 2 }],
    wrong: [['replay', programs, 'c-1', '--program', 'retuns'], 3, 'There is no program "retuns"'],
  },
  tag: {
    plain: [['tag', 'c-1', 'silver', '--at', '1'], /^silver -> main~1~/],
    json: [['tag', 'c-1', 'bronze'], { thread: 'c-1', tag: 'bronze' }],
    wrong: [['tag', 'c-1', ''], 2, 'tag'],
  },
  untag: {
    plain: [['untag', 'c-1', 'silver'], /^removed silver\n$/],
    json: [['untag', 'c-1', 'bronze'], { thread: 'c-1', untagged: 'bronze' }],
    wrong: [['untag', 'c-1', 'gould'], 3, 'has no tag "gould"; did you mean gold'],
  },
  verify: {
    plain: [['verify', 'c-1', '--branch', 'main'], /^ok 1 branch, \d+ entries\n$/],
    json: [['verify', '--all'], { ok: true, damaged: [], repaired: [] }],
    wrong: [['verify', 'c-1', '--all'], 2, 'Name a thread, or pass --all.'],
  },
  pauses: {
    plain: [['pauses', 'ask-1'], /^thread\t.*\nask-1\tmain\tp-\w{20}\tquestion\t.*Open a return/],
    json: [['pauses', 'ask-2'], { pauses: [{ threadId: 'ask-2', kind: 'question' }] }],
    wrong: [['pauses', 'ask'], 3, 'did you mean ask-1, ask-2 or ask-3?'],
  },
  answer: {
    plain: [['answer', 'ask-1', '{"approved":true}', '--yes'], /^answered p-\w{20}\n$/],
    json: [['answer', 'ask-2', '--text', 'yes', '--yes'], { thread: 'ask-2', answer: 'yes' }],
    wrong: [['answer', 'ask-1'], 2, 'No answer is given.'],
  },
  approve: {
    plain: [['approve', 'ask-3', '--yes', '--by', 'ada'], /^approved p-\w{20}\n$/],
    json: [['approve', 'ask-4', '--yes'], { thread: 'ask-4', answer: { approved: true } }],
    wrong: [['approve', 'c-1'], 3, 'has no open questions'],
  },
  reject: {
    plain: [['reject', 'ask-5'], /^rejected p-\w{20}\n$/],
    json: [['reject', 'ask-6', '--reason', 'no'], { answer: { approved: false, reason: 'no' } }],
    wrong: [['reject', 'ask-7', 'p-nothing'], 3, 'asks no question "p-nothing"'],
  },
  cancel: {
    plain: [['cancel', 'ask-7', '--reason', 'enough'], /^cancelled; now failed\n$/],
    json: [['cancel', 'c-1'], { thread: 'c-1', cancelled: false, status: 'completed' }],
    wrong: [['cancel', 'ask-7', '--branch', 'x'], 3, 'has no branch "x"'],
  },
  signal: {
    plain: [['signal', 'wait-1', 'parcel', '{"kg":1}'], /^sent parcel\n$/],
    json: [['signal', 'wait-2', 'parcel'], { thread: 'wait-2', signal: 'parcel' }],
    wrong: [['signal', 'wait-2', 'parcel', '{kg'], 2, 'The value is not JSON'],
  },
  'store list': {
    plain: [['store', 'list', 'user=u', 'prefs'], /^key\tvalue\tupdated\ntheme\t\{"dark":true\}\t2/],
    json: [['store', 'list'], { collections: [{ scope: { user: 'u' }, collection: 'prefs' }] }],
    wrong: [['store', 'list', 'u'], 2, '"u" is not a scope'],
  },
  'store get': {
    plain: [['store', 'get', 'user=u', 'prefs', 'theme'], /^\{\n {2}"dark": true\n\}\n$/],
    json: [['store', 'get', 'user=u', 'prefs', 'theme'], { key: 'theme', value: { dark: true } }],
    wrong: [['store', 'get', 'user=u', 'prefs', 'thema'], 3, 'no item "thema" in user=u prefs; did you mean theme?'],
  },
  'store put': {
    plain: [['store', 'put', 'user=u', 'prefs', 'language', '"de"'], /^language version [\w-]+\n$/],
    json: [['store', 'put', 'user=u', 'prefs', 'size', '{"eu":42}'], { key: 'size' }],
    wrong: [['store', 'put', 'user=u', 'prefs', 'size', '1', '--ttl', 'long'], 2, '--ttl "long" is not a duration'],
  },
  'store search': {
    plain: [['store', 'search', 'user=u', 'prefs', '--filter', '{"eu":{"gte":40}}'], /\nsize\t\{"eu":42\}\t/],
    json: [['store', 'search', 'user=u', 'prefs', '--prefix', 'th'], { items: [{ key: 'theme' }] }],
    wrong: [['store', 'search', 'user=u', 'prefs', '--filter', '{'], 2, '--filter is not JSON'],
  },
  'store delete': {
    plain: [['store', 'delete', 'user=u', 'prefs', 'language'], /^deleted language\n$/],
    json: [['store', 'delete', 'user=u', 'prefs', 'size'], { key: 'size', deleted: true }],
    wrong: [['store', 'delete', 'user=u', 'prefs', 'theme', '--expect', 'other'], 4, 'theme'],
  },
  erase: {
    plain: [['erase', 'gone-1', '--yes', '--reason', 'test'], /^Erased thread gone-1: 1 branch\.\n$/],
    json: [['erase', '--scope', 'user=gone', '--yes'], { target: 'the memory of user=gone', items: 0 }],
    wrong: [['erase', 'gone-2'], 2, "can't be undone"],
  },
  prune: {
    plain: [['prune', 'p-1', '--yes'], /^Removed 2 entries of p-1\.\n$/],
    json: [['prune', 'p-2', '--before', '1', '--yes'], { id: 'p-2', branch: 'main', removed: 1 }],
    wrong: [['prune', 'p-2'], 2, "can't be undone"],
  },
  'keys rotate': {
    plain: [[...keyed, 'keys', 'rotate'], /\treads only\tk1\t.*\n[\w-]+\tcurrent\tk1\t/],
    json: [
      [...keyed, 'keys', 'rotate', '--all-tenants'],
      { tenants: expect.arrayContaining([expect.objectContaining({ tenant: 'default', masters: ['k1'] })]) },
    ],
    wrong: [['keys', 'rotate'], 2, 'keys is not set'],
  },
  'keys rewrap': {
    plain: [[...keyed, 'keys', 'rewrap'], /\tk1\t/],
    json: [[...keyed, 'keys', 'rewrap'], { current: expect.any(String) }],
    wrong: [['keys', 'rewrap'], 2, 'keys is not set'],
  },
  'keys status': {
    plain: [[...keyed, 'keys', 'status'], /^key\tuse\tmaster\tcreated\n/],
    json: [[...keyed, 'keys', 'status'], { current: expect.any(String), dataKeys: expect.anything() }],
    wrong: [['keys', 'status'], 2, 'keys is not set'],
  },
  sweep: {
    plain: [
      ['sweep', '--dry-run', '--ttl', '1ms', '--existing'],
      /expired: \d+ entries[^]*\nWould remove \d+ expired threads?, /,
    ],
    json: [['sweep'], { dryRun: false, threads: 0, swept: [] }],
    wrong: [['sweep', '--existing'], 2, '--existing needs --ttl'],
  },
  copy: {
    plain: [
      ['copy', STORE, `sqlite:${join(folder, 'copy-one.db')}`],
      /^branches: +\d+ \(0 were there\)\nentries: +\d+ /,
    ],
    json: [['copy', STORE, `file:${join(folder, 'copy-two')}`], { complete: true, refused: [], same: 0 }],
    wrong: [['copy', STORE, 'memory:', '--since', 'soon'], 2, '--since is "soon"'],
  },
  export: {
    plain: [['export', 'c-1'], /^\{"holdfast":"fixture",[^]*"entries":\d+\}\n$/],
    json: [['export', 'c-1', join(folder, 'c-1.jsonl'), '--redact'], { thread: 'c-1', redacted: true }],
    wrong: [['export', 'c1'], 3, 'No thread c1; did you mean c-1?'],
  },
  import: {
    plain: [['import', join(folder, 'c-1.jsonl'), '--as', 'c-2'], /^c-2: \d branch(es)?, \d+ entries\n$/],
    json: [['import', join(folder, 'c-1.jsonl'), '--as', 'c-3'], { thread: 'c-3', entries: expect.any(Number) }],
    wrong: [['import', join(folder, 'c-1.jsonl')], 4, 'exists already'],
  },
  'import-langgraph': {
    plain: [['import-langgraph', `sqlite:${langgraph}`], /^1 threads, 2 checkpoints, 1 pending writes; 0 checkpoints/],
    json: [['import-langgraph', langgraph], { threads: 1, same: 2, failed: [], complete: true }],
    wrong: [['import-langgraph', 'redis://localhost'], 2, 'is a redis address'],
  },
  archive: {
    plain: [['archive', 'ask-7', ...archiveIn], /^ask-7: \d+ entries, [\d.]+ k?B in folder /],
    json: [['archive', 'c-1', '--keep', ...archiveIn], { thread: 'c-1', kept: true, entries: expect.any(Number) }],
    wrong: [['archive', 'c-1'], 2, 'No archive is named.'],
  },
  archives: {
    plain: [
      ['archives', '--verify', ...archiveIn],
      /^thread\tbranch\tkind\t[^]*ask-7\tmain\tthread\t0-\d+[^]*\nok \d files/,
    ],
    json: [['archives', 'ask-7', '--show', ...archiveIn], { thread: 'ask-7', branches: [{ branch: 'main' }] }],
    wrong: [['archives', '--show', ...archiveIn], 2, '--show needs a thread.'],
  },
  restore: {
    plain: [['restore', 'ask-7', ...archiveIn], /^ask-7: 1 branch, \d+ entries\n$/],
    json: [['restore', 'ask-7', '--remove', ...archiveIn], { thread: 'ask-7', branches: ['main'], removed: 1 }],
    wrong: [['restore', 'nobody', ...archiveIn], 3, 'Nothing of thread'],
  },
  stats: {
    plain: [['stats'], /^threads: +\d+ \(\d+ branches\)\n/],
    json: [['stats'], { statuses: expect.anything() }],
    wrong: [['stats', '--sample', 'few'], 2, '--sample is "few"'],
  },
  doctor: {
    plain: [
      ['doctor', '--read-only'],
      /^ok +versions +holdfast [^]*\nok +schema [^]*\nok +retention +.*retention: 'keep' turns this off/s,
    ],
    json: [['doctor'], { ok: true, checks: expect.anything() }],
    wrong: [['doctor', '--readonly'], 2, 'Did you mean --read-only?'],
  },
  migrate: {
    plain: [['migrate', programs, '--program', 'counter'], /\d+ checked, 0 migrated, 0 failed\n$/],
    json: [
      ['migrate', programs, '--program', 'counter', '--dry-run'],
      { program: 'counter', dryRun: true, failed: [] },
    ],
    wrong: [['migrate', programs], 2, 'Choose one with --program'],
  },
}

it('has a case for every command, and no other', () => {
  const names = COMMANDS.map(({ usage }) => usage.split(/ [<[]/)[0])
  expect(Object.keys(CASES).sort()).toEqual(names.sort())
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const postgres = (await durableBackends()).find(({ name }) => name === 'Postgres')
it.skipIf(postgres?.missing ?? true)('says that a login was refused, and never the password', async () => {
  const url = new URL((await postgres?.fresh()) as string)
  url.password = 'wrong-secret'
  const [refused, report] = [
    await holdfast(['threads', '--store', url.href, '--json', '--debug']),
    await holdfast(['doctor', '--store', url.href]),
  ]
  expect(refused).toMatchObject({ code: 5, out: '', err: expect.stringContaining('refused the login') })
  expect(report).toMatchObject({ code: 1, out: expect.stringMatching(/^failed +store +.*refused the login/m) })
  for (const said of [refused.err, report.out, report.err]) expect(said).not.toContain('wrong-secret')
})

describe.each(backends)('every command on $name', ({ name, missing, fresh, cleanup }) => {
  let store: string

  beforeAll(async () => {
    if (missing) return
    mkdirSync(join(folder, name), { recursive: true })
    store = await fresh()
    await using hf = await openHoldfast(store)
    await using locked = await openHoldfast(`sqlite:${join(folder, name, 'keyed.db')}`, { keys })
    await locked.thread(counter, 'c-1').run({ input: {} })
    for (const id of ['p-1', 'p-2', 'c-1']) await hf.thread(counter, id).run({ input: {} })
    const log = await hf.log('c-1')
    await log.tag('gold')
    await log.tag('old')
    const paused = Array.from({ length: 7 }, (_, i) => hf.thread(returns, `ask-${i + 1}`))
    await Promise.all(paused.map((thread) => thread.run({ input: { orderId: 'A', price: 500 } })))
    await Promise.all(['wait-1', 'wait-2'].map((id) => hf.thread(returns, id).run({ input: { wait: true } })))
    await hf.thread(returns, 'f-1').run({ input: { fail: true } })
    await hf.store.scope({ user: 'u' }).collection('prefs').put('theme', { dark: true })
    const sign = { host: 'host-1', programs: [{ name: 'returns', version: '1.0.0' }], places: 10, draining: false }
    const workers = hf.store.scope({ holdfast: 'metrics' }).collection<unknown>('workers')
    const day = 86_400_000
    const [now, since] = [Date.now(), Date.now() - day]
    await workers.put('id-1', { ...sign, name: 'w-1', pid: 41, busy: 2, since, at: now, everyMs: day })
    await workers.put('id-2', { ...sign, name: 'w-2', pid: 42, busy: 3, since, at: now - 600_000, everyMs: 30_000 })
    for (const id of ['gone-1', 'gone-2']) await hf.thread(returns, id).run({ input: { orderId: 'A' } })
  })
  afterAll(cleanup)

  describe.each(Object.entries(CASES))('%s', (command, { plain, json, wrong }) => {
    // A worker and a server have no end of their own and are interrupted at once; a project can be made once.
    const run = async (args: readonly string[]) => {
      const where = args.map((arg) =>
        arg === STORE
          ? store
          : arg.includes(langgraph) || arg === keysConfig
            ? arg
            : arg.replace(folder, join(folder, name)),
      )
      const signal =
        command === 'worker' || command === 'serve' || command === 'studio'
          ? AbortSignal.abort()
          : new AbortController().signal
      return holdfast(['--store', store, ...where], { signal })
    }

    it.skipIf(missing)('says no more than what is wrong', async () => {
      const [args, code, says] = wrong
      const [ended, data] = await Promise.all([run(args), run([...args, '--json'])])
      expect(ended).toMatchObject({ code, out: '' })
      expect(ended.err).toContain(says)
      expect(ended.err).not.toMatch(/\n {4}at /)
      expect(ended.err).not.toContain('\u001b')
      expect(data).toMatchObject({ code, out: '' })
      const { error } = JSON.parse(data.err)
      expect(`${error.message} ${error.remedy}`).toContain(says)
      expect(error.code).toMatch(/^[a-z-]+$/)
    })

    it.skipIf(missing)('prints plain text without a terminal', async () => {
      const [args, says, code = 0] = plain
      const ended = await run(args)
      expect(ended, ended.err).toMatchObject({ code, out: expect.stringMatching(says) })
      expect(ended.out).not.toContain('\u001b')
    })

    it.skipIf(missing)('prints JSON when asked', async () => {
      const [args, holds, code = 0] = json
      const ended = await run([...args, '--json'])
      expect(ended.code, ended.err).toBe(code)
      // A day takes a while: how it goes is told beside the result.
      if (command !== 'demo') expect(ended.err).toBe('')
      const lines = ended.out.trimEnd().split('\n')
      expect(JSON.parse(lines[0] as string)).toMatchObject(holds)
      for (const line of lines) JSON.parse(line)
    })
  })

  it.skipIf(missing)('writes no project where a name is wrong', () => {
    expect(existsSync(join(folder, name, 'three'))).toBe(false)
  })
})
