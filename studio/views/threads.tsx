import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ThreadInfo } from '../../src/client/index.js'
import { client } from '../api.js'
import { nameOf, plural, visible } from '../format.js'
import { addKeys } from '../keys.js'
import { Chip, Empty, Head, Problem, Status, Time, toneOf } from '../parts/basics.js'
import { VirtualList } from '../parts/virtual-list.js'
import { go, route, setQuery, to } from '../router.js'
import { programs } from '../session.js'
import { type ListFilters, ThreadList } from '../thread-list.js'

const ROW = 56
const EVERY_MS = 1500

/** Every branch of every thread, those that changed last first. */
export function ThreadsView() {
  const list = useMemo(() => new ThreadList(), [])
  const chosen = useSignal(0)
  const search = useRef<HTMLInputElement>(null)
  const filters = useComputed(() => readFilters(route.value.query))
  const text = useComputed(() => route.value.query.get('q') ?? '')
  const asked = useComputed(() => JSON.stringify(filters.value))
  useSignalEffect(() => {
    void list.begin(JSON.parse(asked.value) as ListFilters)
  })
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void list.renew()
    }, EVERY_MS)
    return () => clearInterval(timer)
  }, [])
  const shown = useComputed(() => {
    const wanted = text.value.toLowerCase()
    return wanted === '' ? list.rows.value : list.rows.value.filter((row) => textOf(row).includes(wanted))
  })
  useEffect(() => {
    const move = (by: number) => {
      chosen.value = Math.max(0, Math.min(shown.peek().length - 1, chosen.peek() + by))
    }
    return addKeys([
      { keys: '/', what: 'Search', run: () => search.current?.focus() },
      { keys: 'j', what: 'Next thread', run: () => move(1) },
      { keys: 'k', what: 'Thread before', run: () => move(-1) },
      {
        keys: 'Enter',
        what: 'Open the thread',
        run: () => {
          const row = shown.peek()[chosen.peek()]
          if (row) go(hrefOf(row))
        },
      },
    ])
  }, [])
  const rows = shown.value
  return (
    <>
      <Head title="Threads" note={<Summary rows={list.rows.value} more={list.more.value} />} />
      <div class="filters" role="search">
        <input
          ref={search}
          class="search"
          type="search"
          placeholder="Search by id, branch, program, tag or label  ( / )"
          aria-label="Search"
          value={text.value}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <StatusFilter rows={list.rows.value} chosen={filters.value.status} />
        <Filters filters={filters.value} rows={list.rows.value} />
      </div>
      <Problem text={list.error.value} />
      {rows.length === 0 && !list.loading.value ? (
        <Empty title="No threads">
          {asked.value === NONE && text.value === ''
            ? 'The first run of a program makes one.'
            : 'None fits these filters.'}
        </Empty>
      ) : (
        <VirtualList
          count={rows.length}
          rowHeight={ROW}
          label="Threads"
          at={chosen.value}
          keyOf={(i) => `${rows[i]?.id} ${rows[i]?.branch}`}
          row={(i) => rows[i] && <Row thread={rows[i]} chosen={i === chosen.value} />}
          onNearEnd={() => void list.loadMore()}
        />
      )}
    </>
  )
}

function hrefOf({ id, branch }: ThreadInfo): string {
  return to(['thread', id], branch === 'main' ? {} : { branch })
}

function Row({ thread, chosen }: { readonly thread: ThreadInfo; readonly chosen: boolean }) {
  const { metadata, status, branch, entries, updatedAt, tags, claimedBy } = thread
  const labels = Object.entries(metadata).filter(([name]) => !name.startsWith('holdfast.'))
  return (
    <a class="row" href={hrefOf(thread)} data-chosen={chosen} aria-current={chosen ? 'true' : undefined}>
      <span class="row-main">
        <span class="row-name">{nameOf(thread.thread)}</span>
        {branch !== 'main' && <Chip title="Branch">{visible(branch)}</Chip>}
        {tags.map((tag) => (
          <Chip key={tag} title="Tag">
            #{visible(tag)}
          </Chip>
        ))}
      </span>
      <span class="row-sub">
        <span>{visible(String(metadata['holdfast.program'] ?? 'no program'))}</span>
        <span>{plural(entries, 'entry', 'entries')}</span>
        {labels.slice(0, 3).map(([name, value]) => (
          <span key={name}>
            {visible(name)}={visible(String(value))}
          </span>
        ))}
        {claimedBy !== null && <span>held by {visible(claimedBy)}</span>}
        {toneOf(status) === 'bad' && <Failure thread={thread} />}
      </span>
      <Status status={status} />
      <span class="row-time">
        <Time at={updatedAt} />
      </span>
    </a>
  )
}

const failures = new Map<string, Promise<string>>()

/** Why it failed, in the words of its newest entry. Asked for only where it is seen. */
function Failure({ thread }: { readonly thread: ThreadInfo }) {
  const text = useSignal('')
  useEffect(() => {
    const { id, branch, checkpoint } = thread
    const key = `${id} ${checkpoint}`
    const asked = failures.get(key) ?? readFailure(thread.thread, branch)
    failures.set(key, asked)
    void asked.then((said) => (text.value = said))
  }, [thread.checkpoint])
  return text.value === '' ? null : <span class="row-error">{visible(text.value.slice(0, 300))}</span>
}

async function readFailure(thread: ThreadInfo['thread'], branch: string): Promise<string> {
  try {
    const { checkpoints } = await client.peek().thread(thread, { branch }).history({ limit: 3, events: true })
    for (const { events = [] } of checkpoints) {
      const found = events.find((event) => 'error' in event)?.['error'] as { readonly message?: string } | undefined
      if (found?.message !== undefined) return found.message
    }
  } catch {
    // The row says that it failed; why is on its own page.
  }
  return ''
}

function Summary({ rows, more }: { readonly rows: readonly ThreadInfo[]; readonly more: boolean }) {
  const threads = new Set(rows.map(({ id }) => id)).size
  const failed = rows.filter(({ status }) => toneOf(status) === 'bad').length
  return (
    <>
      {plural(threads, 'thread')}
      {more ? '+' : ''} · {plural(rows.length, 'branch', 'branches')}
      {failed > 0 && <> · {failed} failed</>}
    </>
  )
}

const STATUSES = [
  'active',
  'waiting_human',
  'waiting',
  'failed',
  'completed',
  'limited',
  'cancelled',
  'forked',
  'incompatible',
]

function StatusFilter({ rows, chosen }: { readonly rows: readonly ThreadInfo[]; readonly chosen: readonly string[] }) {
  const counts = new Map<string, number>()
  for (const { status } of rows) counts.set(status, (counts.get(status) ?? 0) + 1)
  const names = [
    ...new Set([...STATUSES.filter((name) => counts.has(name) || chosen.includes(name)), ...counts.keys()]),
  ]
  const toggle = (name: string) =>
    setQuery({ status: chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name] })
  return (
    <div class="status-filter" role="group" aria-label="Status">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={chosen.includes(name)}
          data-tone={toneOf(name)}
          onClick={() => toggle(name)}
        >
          {name.replaceAll('_', ' ')} <span class="count">{counts.get(name) ?? 0}</span>
        </button>
      ))}
    </div>
  )
}

function Filters({ filters, rows }: { readonly filters: ListFilters; readonly rows: readonly ThreadInfo[] }) {
  const names = new Set([
    ...programs.value.map(({ name }) => name),
    ...rows.flatMap(({ metadata }) =>
      metadata['holdfast.program'] === undefined ? [] : [String(metadata['holdfast.program'])],
    ),
    ...(filters.program === '' ? [] : [filters.program]),
  ])
  const set = (name: string) => (event: { readonly currentTarget: { readonly value: string } }) =>
    setQuery({ [name]: event.currentTarget.value })
  return (
    <div class="filter-fields">
      <select aria-label="Program" value={filters.program} onChange={set('program')}>
        <option value="">Every program</option>
        {[...names].sort().map((name) => (
          <option key={name} value={name}>
            {visible(name)}
          </option>
        ))}
      </select>
      <select aria-label="Changed" value={filters.since} onChange={set('since')}>
        <option value="">At any time</option>
        <option value="hour">In the last hour</option>
        <option value="day">In the last day</option>
        <option value="week">In the last week</option>
      </select>
      <input aria-label="Tag" placeholder="Tag" value={filters.tag} onInput={set('tag')} />
      <input aria-label="Label" placeholder="Label=value" value={filters.metadata} onInput={set('metadata')} />
    </div>
  )
}

function readFilters(query: URLSearchParams): ListFilters {
  const one = (name: string) => query.get(name) ?? ''
  return {
    status: query.getAll('status'),
    program: one('program'),
    tag: one('tag'),
    metadata: one('metadata'),
    since: one('since'),
  }
}

const NONE = JSON.stringify(readFilters(new URLSearchParams()))

function textOf({ thread, branch, status, tags, metadata }: ThreadInfo): string {
  return `${nameOf(thread)} ${branch} ${status} ${tags.join(' ')} ${JSON.stringify(metadata)}`.toLowerCase()
}
