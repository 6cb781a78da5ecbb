// @ts-check
// What both agents do: nothing of it belongs to either side.
import { z } from 'zod'

/** What a tool gives back, of the size that a look at an order has. @param {string} order */
export const lookUp = (order) => ({
  order,
  status: 'in transit',
  carrier: 'post',
  note: 'left the depot in the morning '.repeat(8),
})
export const inputSchema = z.object({ order: z.string() })
export const INSTRUCTIONS = 'You help customers with their orders.'
export const PROMPT = 'Where are all of my orders?'
export const DONE = 'All of them are on their way.'

/** The model of both: it asks for one order after the other, at no cost, and then it is done. @param {number} calls @param {number} sofar */
export function decide(calls, sofar) {
  return sofar < calls ? { id: `call-${sofar}`, order: `ORD-${sofar}` } : undefined
}
