// @ts-check

/** The engine that the driver uses on this version of Node. @returns {Promise<any>} */
async function loadEngine() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const builtIn = major > 22 || (major === 22 && minor >= 13)
  return import(builtIn ? 'node:sqlite' : '@photostructure/sqlite')
}

/**
 * A prepared INSERT on the main thread, one commit each, with the driver's pragmas.
 * @param {string} path
 * @param {'FULL' | 'NORMAL'} synchronous
 * @returns {Promise<import('../backends.mjs').Floor>}
 */
export async function openSqliteFloor(path, synchronous) {
  const { DatabaseSync } = await loadEngine()
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  for (const pragma of [
    'journal_mode = WAL',
    `synchronous = ${synchronous}`,
    ...(synchronous === 'FULL' ? ['fullfsync = ON', 'checkpoint_fullfsync = ON'] : []),
    'wal_autocheckpoint = 1000',
    'journal_size_limit = 67108864',
    'temp_store = MEMORY',
    'cache_size = -16000',
  ]) {
    db.prepare(`PRAGMA ${pragma}`).get()
  }
  db.exec('CREATE TABLE IF NOT EXISTS entries (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT')
  db.exec('CREATE TABLE IF NOT EXISTS states (name TEXT PRIMARY KEY, json TEXT NOT NULL) STRICT')
  const insert = db.prepare('INSERT INTO entries (bytes) VALUES (?)')
  const select = db.prepare('SELECT json FROM states WHERE name = ?')
  return {
    write: (bytes) => insert.run(bytes),
    putState: (name, json) => db.prepare('INSERT OR REPLACE INTO states VALUES (?, ?)').run(name, json),
    getState: (name) => JSON.parse(select.get(name).json),
    close: () => db.close(),
  }
}
