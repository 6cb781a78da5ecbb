// Which public names are described on which page of docs/api: by the file that declares them.

export const ENTRIES = [
  { name: 'holdfast', file: 'index.d.ts' },
  { name: 'holdfast/pipeline', file: 'pipeline/index.d.ts' },
  { name: 'holdfast/testing', file: 'testing/index.d.ts' },
  { name: 'holdfast/langgraph', file: 'adapters/langgraph/index.d.ts' },
  { name: 'holdfast/server', file: 'server/index.d.ts' },
  { name: 'holdfast/client', file: 'client/index.d.ts' },
]

/** A name belongs to the first page of its entry point that holds the beginning of its file's path. */
export const PAGES = [
  {
    file: 'errors.md',
    entry: 'holdfast',
    title: 'Errors',
    intro: ['Recognise them by `isHoldfastError(error, code)`, never by their text.'],
    holds: ['core/error', 'runtime/errors'],
  },
  {
    file: 'agents.md',
    entry: 'holdfast',
    title: 'Agents, tools, models and messages',
    intro: ['Guides: [agents](../agents.md), [models, messages and tools](../models.md).'],
    holds: ['agent/'],
  },
  {
    file: 'store.md',
    entry: 'holdfast',
    title: 'The store',
    intro: ['Guide: [the store](../store.md).'],
    holds: ['store/', 'runtime/step/step-store', 'log/store-', 'log/items/'],
  },
  {
    file: 'data.md',
    entry: 'holdfast',
    title: 'Keeping, moving, archiving and erasing data',
    intro: ['Guides: [moving data](../moving-data.md), [retention](../retention.md), [archive](../archive.md).'],
    holds: ['copy', 'log/copy-', 'fixture/', 'retention/', 'archive/', 'cache/'],
  },
  {
    file: 'programs.md',
    entry: 'holdfast',
    title: 'Opening, programs, threads and workers',
    intro: ['Guides: [flows and runs](../programs.md), [graphs](../graphs.md), [workers](../workers.md).'],
    holds: ['open', 'holdfast', 'runtime/', 'core/ids', 'telemetry/'],
  },
  {
    file: 'log.md',
    entry: 'holdfast',
    title: 'The log and the driver contract',
    intro: ['Guides: [concepts](../concepts.md), [one write](../one-write.md), [guarantees](../guarantees.md).'],
    holds: ['log/', 'codec/', 'core/'],
  },
  {
    file: 'pipeline.md',
    entry: 'holdfast/pipeline',
    title: 'holdfast/pipeline',
    intro: ['Guide: [pipelines](../pipelines.md).'],
    holds: [''],
  },
  {
    file: 'testing.md',
    entry: 'holdfast/testing',
    title: 'holdfast/testing',
    intro: ['Guide: [testing your agents](../testing-your-agents.md).'],
    holds: [''],
  },
  {
    file: 'server.md',
    entry: 'holdfast/server',
    title: 'holdfast/server',
    intro: ['Guide: [the server](../server.md).'],
    holds: [''],
  },
  {
    file: 'client.md',
    entry: 'holdfast/client',
    title: 'holdfast/client',
    intro: ['Guide: [the server](../server.md).'],
    holds: [''],
  },
  {
    file: 'langgraph.md',
    entry: 'holdfast/langgraph',
    title: 'holdfast/langgraph',
    intro: ['Guide: [LangGraph.js](../langgraph.md).'],
    holds: [''],
  },
]
