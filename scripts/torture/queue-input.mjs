// @ts-check

/**
 * Leaves input for a worker, as a server does that answers before the work begins.
 * @param {import('holdfast').Holdfast} hf
 * @param {any} program
 * @param {string} thread @param {import('holdfast').Value} value @param {string} [key]
 */
export async function queueInput(hf, program, thread, value, key = thread) {
  await hf.thread(program, thread).enqueue(/** @type {never} */ (value), { key })
}
