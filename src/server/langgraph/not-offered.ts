import { HttpProblem } from '../http/problem.js'

/** What this server does not do, said so. */
export function notOffered(what: string, why: string): HttpProblem {
  return new HttpProblem(501, 'not-offered', `${what} is not offered by this server. ${why}`, {
    fields: { field: what },
  })
}
