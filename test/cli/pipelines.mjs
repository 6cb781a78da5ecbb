// The pipeline that the tests of the command line run: its sink keeps nothing.
import { pipeline } from 'holdfast/pipeline'

export const notes = pipeline({
  name: 'notes',
  version: '1.0.0',
  source: [
    { id: 'one', content: 'a\nb' },
    { id: 'two', content: 'c' },
  ],
  stages: [{ name: 'lines', split: ({ text }) => text.split('\n') }],
  sink: { write: async () => {}, remove: async () => {} },
})
