import { client } from '../api.js'
import { plural } from '../format.js'
import { Head, Problem } from '../parts/basics.js'
import { useResource } from '../resource.js'
import { Questions } from './inbox.js'

/** What may or may not have happened, and what forks want to do again. A person says. */
export function EffectsView() {
  const page = useResource(() => client.value.pauses({ limit: 500 }), { everyMs: 4000 })
  const all = page.value.value?.pauses ?? []
  const unknown = all.filter(({ kind }) => kind === 'unknown-effect')
  const asked = all.filter(({ kind }) => kind === 'permission')
  return (
    <>
      <Head
        title="Unknown effects"
        note={`${plural(unknown.length, 'effect')} of unknown outcome · ${plural(asked.length, 'question')} of forks`}
      />
      <p class="hint view-hint">
        A worker was lost, or a tool failed, between asking the outside world for something and recording what came of
        it. Find out what happened there, by the key, and say it here: nothing is repeated before.
      </p>
      <Problem text={page.error.value} />
      <Questions
        pauses={[...unknown, ...asked]}
        loaded={page.value.value !== undefined}
        onDone={() => void page.reload()}
        none="Nothing is in doubt"
      />
    </>
  )
}
