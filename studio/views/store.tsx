import { useComputed } from '@preact/signals'
import { client } from '../api.js'
import { brief, clock, plural, visible } from '../format.js'
import { Empty, Head, Problem, Time } from '../parts/basics.js'
import { Json } from '../parts/json.js'
import { useResource } from '../resource.js'
import { route, setQuery, to } from '../router.js'

type Scope = Readonly<Record<string, string>>

function scopeName(scope: Scope): string {
  return Object.entries(scope)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')
}

/** Memory that outlives threads, by scope and collection. */
export function StoreView() {
  const listed = useResource(() => client.value.collections({ limit: 1000 }))
  const chosen = useComputed(() => {
    const { query } = route.value
    const scope = query.get('scope')
    const collection = query.get('collection')
    if (scope === null || collection === null) return undefined
    const known = listed.value.value?.collections.find(
      (one) => scopeName(one.scope) === scope && one.collection === collection,
    )
    return known
  })
  const collections = listed.value.value?.collections ?? []
  const scopes = new Map<string, typeof collections>()
  for (const one of collections) scopes.set(scopeName(one.scope), [...(scopes.get(scopeName(one.scope)) ?? []), one])
  return (
    <>
      <Head title="Store" note={`${plural(scopes.size, 'scope')} · ${plural(collections.length, 'collection')}`} />
      <Problem text={listed.error.value} />
      {listed.value.value !== undefined && collections.length === 0 && (
        <Empty title="The store is empty">Programs keep here what outlives a thread.</Empty>
      )}
      {collections.length > 0 && (
        <div class="store">
          <nav class="store-scopes" aria-label="Scopes">
            {[...scopes].map(([name, inside]) => (
              <section key={name}>
                <h2>{visible(name)}</h2>
                <ul>
                  {inside.map(({ collection }) => (
                    <li key={collection}>
                      <a
                        href={to(['store'], { scope: name, collection })}
                        aria-current={
                          chosen.value?.collection === collection && scopeName(chosen.value.scope) === name
                            ? 'true'
                            : undefined
                        }
                      >
                        {visible(collection)}
                      </a>
                    </li>
                  ))}
                </ul>
              </section>
            ))}
          </nav>
          <div class="store-items">
            {chosen.value === undefined ? (
              <Empty title="Choose a collection" />
            ) : (
              <Items
                key={scopeName(chosen.value.scope) + chosen.value.collection}
                scope={chosen.value.scope}
                collection={chosen.value.collection}
              />
            )}
          </div>
        </div>
      )}
    </>
  )
}

function Items({ scope, collection }: { readonly scope: Scope; readonly collection: string }) {
  const prefix = useComputed(() => route.value.query.get('prefix') ?? '')
  const page = useResource(() =>
    client.value
      .collection(scope, collection)
      .list({ limit: 200, ...(prefix.value === '' ? {} : { prefix: prefix.value }) }),
  )
  const items = page.value.value?.items ?? []
  const chosen = useComputed(() => route.value.query.get('key'))
  const here = items.find(({ key }) => key === chosen.value)
  return (
    <>
      <header class="store-head">
        <h2>{visible(collection)}</h2>
        <input
          type="search"
          aria-label="Keys that begin with"
          placeholder="Keys that begin with"
          value={prefix.value}
          onInput={(event) => setQuery({ prefix: event.currentTarget.value, key: '' })}
        />
      </header>
      <Problem text={page.error.value} />
      <ul class="items" aria-label="Items">
        {items.map(({ key, value, updatedAt }) => (
          <li key={key}>
            <button
              type="button"
              class="item-row"
              aria-expanded={key === chosen.value}
              onClick={() => setQuery({ key: key === chosen.value ? '' : key })}
            >
              <code>{visible(key)}</code>
              <span>{brief(value, 80)}</span>
              <Time at={updatedAt} />
            </button>
            {here?.key === key && (
              <div class="item-detail">
                <dl class="facts">
                  <dt>Version</dt>
                  <dd>
                    <code>{visible(here.version)}</code>
                  </dd>
                  <dt>Written</dt>
                  <dd>{clock(here.updatedAt)}</dd>
                  {here.expiresAt && (
                    <>
                      <dt>Expires</dt>
                      <dd>{clock(here.expiresAt)}</dd>
                    </>
                  )}
                </dl>
                <Json value={here.value} open />
              </div>
            )}
          </li>
        ))}
      </ul>
      {page.value.value?.cursor !== undefined && (
        <p class="hint">The first {items.length}. Narrow it down by how the key begins.</p>
      )}
      {page.value.value !== undefined && items.length === 0 && <Empty title="No items" />}
    </>
  )
}
