import { hostname } from 'node:os'
import type { LogStore } from '../log/log-store.js'
import type { RuntimeEnvironment } from '../runtime/run/environment.js'
import { Attempts } from '../runtime/step/attempt/attempt.js'
import { Company } from '../runtime/worker/company.js'
import { Store } from '../store/store.js'
import { type HoldfastPlaces, sweptArchive } from './places.js'
import { sweeps } from './sweeps.js'
import { workerSigns } from './worker-store.js'

/** What the runs on an open store share. */
export function makeEnvironment(store: LogStore, places: HoldfastPlaces): RuntimeEnvironment {
  return {
    logs: store,
    clock: store.clock,
    randomId: store.randomId,
    random: Math.random,
    owner: `${hostname()}:${process.pid}`,
    observer: store.observer,
    company: new Company(),
    attempts: new Attempts(),
    workers: { running: new Set(), closing: false },
    signs: places.listsWorkers ? workerSigns(store) : undefined,
    redactor: store.redactor,
    store: (of) => new Store(store.items, of),
    retention: store.retention,
    sweep: sweeps(store, sweptArchive(places)),
  }
}
