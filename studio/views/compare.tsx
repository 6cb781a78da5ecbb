import { useComputed } from '@preact/signals'
import { readPathId } from '../../src/client/index.js'
import { client } from '../api.js'
import { nameOf, plural, visible } from '../format.js'
import { Button, Head, Problem, Status } from '../parts/basics.js'
import { type Difference, Differences } from '../parts/differences.js'
import { Json } from '../parts/json.js'
import { useResource } from '../resource.js'
import { go, route, setQuery, to } from '../router.js'
import { Messages } from '../thread/conversation.js'
import { flatten } from '../thread/lanes.js'
import { readMessages } from '../thread/messages.js'

interface Comparison {
  readonly common?: string
  readonly state: readonly Difference[]
  readonly branches: readonly { readonly name: string; readonly status: string; readonly since: number }[]
}

/** Two branches side by side: what each came to since they parted. */
export function CompareView({ id }: { readonly id: string }) {
  const one = useComputed(() => route.value.query.get('one') ?? 'main')
  const other = useComputed(() => route.value.query.get('other') ?? 'main')
  const on = (branch: string) => client.value.thread(readPathId(id), { branch })
  const branches = useResource(() => on('main').branches())
  const found = useResource(() => on(one.value).compare(other.value) as unknown as Promise<Comparison>)
  const left = useResource(() => on(one.value).state())
  const right = useResource(() => on(other.value).state())
  const names = flatten(branches.value.value ?? []).map(({ name }) => name)
  const compared = found.value.value
  const choose = (side: 'one' | 'other', chosen: string) => (
    <select
      aria-label={side === 'one' ? 'Left branch' : 'Right branch'}
      value={chosen}
      onChange={(event) => setQuery({ [side]: event.currentTarget.value })}
    >
      {[...new Set([...names, chosen])].map((name) => (
        <option key={name} value={name}>
          {visible(name)}
        </option>
      ))}
    </select>
  )
  return (
    <div class="compare">
      <Head
        title={`Compare ${nameOf(readPathId(id))}`}
        note={compared?.common === undefined ? undefined : <>parted after {visible(compared.common)}</>}
      >
        <Button
          icon="back"
          onClick={() => go(to(['thread', id], other.value === 'main' ? {} : { branch: other.value }))}
        >
          Thread
        </Button>
      </Head>
      <Problem text={found.error.value ?? left.error.value ?? right.error.value} />
      <div class="compare-sides">
        {[['one', one.value, left] as const, ['other', other.value, right] as const].map(([side, name, facts], i) => {
          const since = compared?.branches[i]
          return (
            <section key={side} class="compare-side" aria-label={side === 'one' ? 'Left' : 'Right'}>
              <header>
                {choose(side, name)}
                {since && <Status status={since.status} />}
                {since && <span class="hint">{plural(since.since, 'entry', 'entries')} of its own</span>}
              </header>
              <div
                class="thread-scroll"
                tabIndex={0}
                role="region"
                aria-label={`Conversation of ${name}, ${side === 'one' ? 'left' : 'right'}`}
              >
                {facts.value.value && <Side state={facts.value.value.state} />}
              </div>
            </section>
          )
        })}
      </div>
      <section class="compare-state">
        <h2>What differs in the state</h2>
        {compared && <Differences found={compared.state} />}
      </section>
    </div>
  )
}

function Side({ state }: { readonly state: Readonly<Record<string, unknown>> }) {
  const messages = readMessages(state)
  return messages === undefined ? <Json value={state} open /> : <Messages messages={messages} />
}
