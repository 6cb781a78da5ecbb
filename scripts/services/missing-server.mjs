// @ts-check

/** No binary of a server was found and none could be fetched. The message says what to do about it. */
export class MissingServerError extends Error {
  /**
   * @param {string} server
   * @param {string} remedy
   * @param {ErrorOptions} [options]
   */
  constructor(server, remedy, options) {
    super(`no ${server} server found, and none could be fetched. ${remedy}`, options)
    this.name = 'MissingServerError'
    this.code = 'MISSING_SERVER'
    this.server = server
  }
}
