// @ts-check

/** What a step of both sides gives back. */
export const PAYLOAD = { text: 'a line of what a tool found out '.repeat(8), at: 'somewhere', count: 3 }
