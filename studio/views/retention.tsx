import { client } from '../api.js'
import { bytes, nameOf, number, plural, visible } from '../format.js'
import { Button, Chip, Empty, Head, Problem } from '../parts/basics.js'
import { useResource } from '../resource.js'
import { to } from '../router.js'
import { may } from '../session.js'

/** How long things are kept, and what the next sweep would take. */
export function RetentionView() {
  const found = useResource(() => (may('admin') ? client.value.retention() : undefined))
  const read = found.value.value
  return (
    <div class="view-scroll" tabIndex={0} role="region" aria-label="Retention">
      <Head title="Retention" note={read && visible(read.policy)}>
        <Button onClick={() => void found.reload()} disabled={found.loading.value}>
          Look again
        </Button>
      </Head>
      <Problem text={found.error.value} />
      {!may('admin') && <Empty title='This needs the role "admin"' />}
      {read && (
        <>
          <dl class="numbers">
            <Figure label="Expired threads" value={number(read.report.threads)} />
            <Figure label="Branches to be cut" value={number(read.report.cut)} />
            <Figure label="Entries" value={number(read.report.entries)} />
            <Figure label="Stored bytes" value={bytes(read.report.bytes)} />
          </dl>
          <section class="block">
            <h2>What a sweep would remove now</h2>
            <p class="hint">
              Nothing is removed by looking. Workers sweep every minute; <code>holdfast sweep</code> does it at once.
            </p>
            {read.threads.length === 0 ? (
              <Empty title="Nothing has expired" />
            ) : (
              <div class="table-frame" tabIndex={0} role="region" aria-label="What would be removed">
                <table class="table">
                  <thead>
                    <tr>
                      <th scope="col">Thread</th>
                      <th scope="col">Why</th>
                      <th scope="col">Branches</th>
                      <th scope="col">Entries</th>
                      <th scope="col">Bytes</th>
                    </tr>
                  </thead>
                  <tbody>
                    {read.threads.map((one) => (
                      <tr key={`${one.id} ${one.branch ?? ''}`}>
                        <td>
                          <a href={to(['thread', one.id], { branch: one.branch === 'main' ? '' : one.branch })}>
                            {nameOf(one.thread)}
                          </a>
                          {one.branch !== undefined && <Chip>{visible(one.branch)}</Chip>}
                        </td>
                        <td>{one.why === 'expired' ? 'expired' : 'more than is kept'}</td>
                        <td>{one.branches}</td>
                        <td>{number(one.entries)}</td>
                        <td>{bytes(one.bytes)}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
            {read.report.threads + read.report.cut > read.threads.length && (
              <p class="hint">The first {plural(read.threads.length, 'row')}.</p>
            )}
          </section>
        </>
      )}
    </div>
  )
}

function Figure({ label, value }: { readonly label: string; readonly value: string }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  )
}
