// A vitest reporter that writes what each test file took and how it ended, as JSON, for the table of scripts/test.mjs.
import { writeFileSync } from 'node:fs'

export default class AreaReporter {
  #file

  constructor({ file }) {
    this.#file = file
  }

  onTestRunEnd(modules, unhandledErrors, reason) {
    const files = modules.map((module) => {
      const count = { passed: 0, failed: 0, skipped: 0 }
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        count[state === 'pending' ? 'skipped' : state]++
      }
      // A file that could not be loaded, or whose hook failed, has no failed test of its own to show for it.
      if (module.state() === 'failed' && count.failed === 0) count.failed = 1
      const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } =
        module.diagnostic()
      const ms = environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration
      return { path: module.moduleId, ms, ...count }
    })
    writeFileSync(this.#file, JSON.stringify({ files, unhandledErrors: unhandledErrors.length, reason }))
  }
}
