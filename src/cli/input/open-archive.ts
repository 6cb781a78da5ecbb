import type { Holdfast } from '../../index.js'
import { usageError } from '../cli-error.js'
import { type Options, text } from '../command.js'
import type { CommandContext } from '../context.js'

/** The store with its archive: of --archive, of HOLDFAST_ARCHIVE, or of the config file. */
export async function openWithArchive(
  context: CommandContext,
  options: Options,
  { create = false }: { readonly create?: boolean } = {},
): Promise<Holdfast> {
  const archive = text(options, 'archive')
  const hf = await context.open({ create, ...(archive === undefined ? {} : { archive }) })
  if (hf.hasArchive) return hf
  throw usageError(
    'No archive is named.',
    'Pass --archive file:archive or --archive "s3://bucket/prefix?endpoint=…", set HOLDFAST_ARCHIVE, or write { "archive": … } to the config file.',
  )
}
