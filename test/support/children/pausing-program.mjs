// The program of the processes that pause and resume: a step, a question, a step. Each real run of a step leaves a line.
import { appendFileSync } from 'node:fs'
import { flow } from 'holdfast'
import { z } from 'zod'

const schema = z.object({ approved: z.boolean(), amount: z.number().optional() })

export function pausing(file) {
  const note = (line) => appendFileSync(file, `${line}\n`)
  return flow({ name: 'pausing', version: '1.0.0' }, async (ctx, input) => {
    const quote = await ctx.step('quote', () => {
      note(`quote ${ctx.thread}`)
      return { amount: input.amount }
    })
    const answer = await ctx.pause({ pay: quote }, { schema })
    return ctx.step('pay', { input: answer }, () => {
      const paid = answer.approved ? (answer.amount ?? quote.amount) : 0
      note(`pay ${ctx.thread} ${paid}`)
      return paid
    })
  })
}
