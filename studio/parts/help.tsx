import { activeKeys, helpOpen } from '../keys.js'
import { Dialog } from './dialog.js'

/** What keys do where one is. */
export function Help() {
  return (
    <Dialog title="What keys do" onClose={() => (helpOpen.value = false)}>
      <dl class="keys">
        {activeKeys().map(({ keys, what }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
