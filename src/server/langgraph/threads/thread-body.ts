import { nullable, type Schema } from '../../http/route.js'

/** What the bodies of several routes of threads hold. Fields that are not named are let through, as clients add some. */
export const METADATA: Schema = nullable({ type: 'object' })
export const ID: Schema = nullable({ type: 'string', minLength: 1, maxLength: 512 })
export const open = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties })
export const answer = { schema: { type: 'object' } }
