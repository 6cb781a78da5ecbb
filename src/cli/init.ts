import { spawn } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { CliError, usageError } from './cli-error.js'
import { type Command, text } from './command.js'
import { projectFiles } from './init-project.js'
import { readVersion } from './version.js'

const PACKAGE_NAME = /^[a-z0-9][a-z0-9._-]{0,100}$/

/** Makes a working project in a folder. Never overwrites: an existing file ends it before anything is written. */
export const run: Command = async (context, [given = '.'], options) => {
  const { output } = context
  const folder = resolve(given)
  const name =
    text(options, 'name') ??
    (basename(folder)
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, '-') ||
      'my-agent')
  if (!PACKAGE_NAME.test(name)) {
    throw usageError(`"${name}" can't name a package.`, 'Pass --name with small letters, digits and dashes.')
  }
  const { store = 'sqlite:agents.db' } = context.global
  const files = projectFiles({ name, version: readVersion(), store })
  const taken = Object.keys(files).filter((path) => existsSync(join(folder, path)))
  if (taken.length > 0) {
    throw new CliError('conflict', `${folder} already has ${taken.join(', ')}.`, {
      remedy: 'Use an empty folder; nothing was written.',
      data: { folder, taken },
    })
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), content, { flag: 'wx' })
  }
  const installed = options['install'] === false || isInstalled(folder) || (await install(folder, output.json))
  if (output.json) output.document({ folder, files: Object.keys(files), installed })
  else {
    for (const path of Object.keys(files)) output.line(path)
    const enter = folder === process.cwd() ? '' : `cd ${relative(process.cwd(), folder) || folder} && `
    const install = options['install'] === false && !isInstalled(folder) ? 'npm install && ' : ''
    output.note(`\nTry it: ${enter}${install}npm start`)
    output.note('Kill it and resume it: npm test')
  }
  if (!installed) {
    throw new CliError('failed', 'The files are written, but `npm install` failed.', {
      remedy: `Run it in ${folder}.`,
      exitCode: 1,
    })
  }
}

function isInstalled(folder: string): boolean {
  try {
    createRequire(join(folder, 'package.json')).resolve('holdfast')
    return true
  } catch {
    return false
  }
}

function install(folder: string, quiet: boolean): Promise<boolean> {
  return new Promise((done) => {
    // To standard error, so that standard output stays ours.
    const npm = spawn('npm', ['install', '--no-fund', '--no-audit'], {
      cwd: folder,
      stdio: ['ignore', quiet ? 'ignore' : 2, quiet ? 'ignore' : 2],
      shell: process.platform === 'win32',
    })
    npm.on('error', () => done(false))
    npm.on('exit', (code) => done(code === 0))
  })
}
