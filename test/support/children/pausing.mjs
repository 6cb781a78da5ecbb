// One of the processes that share a paused thread, by its role:
//   node pausing.mjs start <url> <thread> <file>     runs until the question and ends
//   node pausing.mjs answer <url> <thread> <json>    has no program: lists the question and answers it
//   node pausing.mjs resume <url> <thread> <file>    goes on
//   node pausing.mjs race <url> <by>                 answers what each line of stdin names: { thread, pause, value }
// Prints one line of JSON per thing done.
import { createInterface } from 'node:readline'
import { openHoldfast } from 'holdfast'

const [role, url, thread, given] = process.argv.slice(2)
const say = (value) => console.log(JSON.stringify(value))
const hf = await openHoldfast(url)

switch (role) {
  case 'start': {
    const { pausing } = await import('./pausing-program.mjs')
    say(await hf.thread(pausing(given), thread).run({ input: { amount: 40 } }))
    break
  }
  case 'answer': {
    const { pauses } = await hf.pauses({ thread })
    const wrong = await hf
      .inspect(thread)
      .answer(pauses[0].id, { approved: 'yes' })
      .catch(({ code, data }) => ({ code, path: data.path }))
    await hf.inspect(thread).answer(pauses[0].id, JSON.parse(given), { by: 'ann' })
    say({ pauses, wrong })
    break
  }
  case 'resume': {
    const { pausing } = await import('./pausing-program.mjs')
    say(await hf.thread(pausing(given), thread).run())
    break
  }
  case 'race': {
    say('ready')
    for await (const line of createInterface({ input: process.stdin })) {
      const { thread: raced, pause, value } = JSON.parse(line)
      const told = await hf
        .inspect(raced)
        .answer(pause, value, { by: thread })
        .then(
          () => ({ won: thread }),
          ({ code, data }) => ({ lost: thread, code, data }),
        )
      say(told)
    }
    break
  }
}
await hf.close()
