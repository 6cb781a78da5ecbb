import { spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { describeRetention } from '../../../internal.js'
import { CliError, usageError } from '../../cli-error.js'
import { type Command, text } from '../../command.js'
import type { CommandContext } from '../../context.js'
import { projectFiles } from '../../input/init-project.js'
import { shellQuote } from '../../screen/output.js'

const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,100}$/

/** Makes a working project in a folder. Never overwrites: an existing file ends it before anything is written. */
export const run: Command = async (context, [given], options) => {
  const { output } = context
  const folder = context.path(given ?? (await chooseFolder(context)))
  const name = text(options, 'name') ?? nameOf(folder)
  if (!PACKAGE_NAME.test(name)) {
    throw usageError(`"${name}" can't name a package.`, 'Pass --name with lower-case letters, digits and dashes.')
  }
  const { store = 'sqlite:agents.db' } = context.global
  const files = projectFiles({ name, store, folder, from: text(options, 'from') })
  const paths = Object.keys(files)
  const taken = paths.filter((path) => existsSync(join(folder, path)))
  if (taken.length > 0) {
    throw new CliError('conflict', `${folder} already has ${taken.join(', ')}. Nothing was written.`, {
      remedy: 'Name another folder: holdfast init my-agent',
      data: { folder, taken },
    })
  }
  await writeFiles(folder, files)
  const wanted = options['install'] !== false
  const ready = isInstalled(folder, files)
  if (!output.json) for (const path of paths) output.line(path)
  const installed = ready || (wanted && (await install(context, folder)))
  if (output.json) output.document({ folder, files: paths, installed })
  if (wanted && !installed) {
    throw new CliError('failed', 'The files are written, but `npm install` failed.', {
      remedy: `Run it in ${folder}.`,
      exitCode: 1,
    })
  }
  const here = context.path('.')
  const enter = folder === here ? '' : `cd ${shellQuote(relative(here, folder))} && `
  output.note(`\nTry it:                   ${enter}${installed ? '' : 'npm install && '}npm start`)
  output.note('Kill it and resume it:    npm test')
  output.note('A real model is one line: src/model.ts')
  output.note(`Retention: ${describeRetention()}`)
}

/** This folder if it is empty. Where it is not, a person is asked for another. */
async function chooseFolder(context: CommandContext): Promise<string> {
  const used = readdirSync(context.path('.')).some((name) => !name.startsWith('.'))
  if (!used || !context.interactive) return '.'
  const { askText } = await import('../../screen/ask.js')
  return askText('This folder is not empty. Which folder should the project be in?', (given) => {
    if (given.trim() === '') return 'Name a folder, such as my-agent.'
    const path = context.path(given)
    return existsSync(path) && readdirSync(path).length > 0 ? `${given} is not empty either.` : undefined
  })
}

function nameOf(folder: string): string {
  const name = basename(folder).toLowerCase()
  return name.replace(/[^a-z0-9._-]+/g, '-').replace(/^[._-]+/, '') || 'my-agent'
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const full = join(folder, path)
    try {
      await mkdir(dirname(full), { recursive: true })
      // Exclusively: what appeared since it was looked for stays as it is.
      await writeFile(full, content, { flag: 'wx' })
    } catch (error) {
      throw new CliError('failed', `${full} can't be written: ${(error as Error).message}`, {
        remedy: 'Name a folder that you may write to.',
        data: { folder, path },
      })
    }
  }
}

function isInstalled(folder: string, files: Readonly<Record<string, string>>): boolean {
  const { dependencies, devDependencies } = JSON.parse(files['package.json'] as string) as Record<string, object>
  const names = Object.keys({ ...dependencies, ...devDependencies })
  return names.every((name) => existsSync(join(folder, 'node_modules', name)))
}

function install({ output, signal }: CommandContext, folder: string): Promise<boolean> {
  output.note('\nnpm install')
  return new Promise((done) => {
    // To standard error, so that standard output stays ours.
    const npm = spawn('npm', ['install', '--no-fund', '--no-audit', '--loglevel', 'error'], {
      cwd: folder,
      stdio: ['ignore', output.json ? 'ignore' : 2, output.json ? 'ignore' : 2],
      shell: process.platform === 'win32',
      signal,
    })
    npm.on('error', () => done(false))
    npm.on('exit', (code) => done(code === 0))
  })
}
