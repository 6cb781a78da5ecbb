import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, it } from 'vitest'
import { pages, readPage, root } from './blocks.js'

const prose = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/<!--[\s\S]*?-->/g, '')

/** The anchors of a page, as Markdown viewers make them from its headings. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>()
  const anchors = new Set<string>()
  for (const [, heading = ''] of prose(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const plain = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-')
    const before = seen.get(plain) ?? 0
    seen.set(plain, before + 1)
    anchors.add(before === 0 ? plain : `${plain}-${before}`)
  }
  return anchors
}

/** The links of a page that lead nowhere. */
function brokenLinks(page: string, text: string): string[] {
  const broken: string[] = []
  for (const [, target = ''] of prose(text)
    .replace(/`[^`\n]*`/g, '')
    .matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^(https?|mailto):/.test(target)) continue
    const [path = '', anchor] = target.split('#')
    const file = path === '' ? page : normalize(join(dirname(page), path))
    if (!existsSync(join(root, file))) broken.push(`${page} -> ${target}: no such file`)
    else if (anchor === undefined) continue
    else if (statSync(join(root, file)).isDirectory()) broken.push(`${page} -> ${target}: a folder has no anchors`)
    else if (!anchorsOf(file === page ? text : readPage(file)).has(anchor)) {
      broken.push(`${page} -> ${target}: no such heading`)
    }
  }
  return broken
}

describe('the links of the documentation', () => {
  it('lead to files and headings that exist', () => {
    expect(pages().flatMap((page) => brokenLinks(page, readPage(page)))).toEqual([])
  })

  it('reach every page of docs/ from its index', () => {
    const index = readPage('docs/README.md')
    const linked = [...index.matchAll(/\]\(([^)#]+)/g)].map(([, target]) => normalize(join('docs', target as string)))
    const own = pages().filter((page) => /^docs\/(backends\/)?[^/]+\.md$/.test(page) && page !== 'docs/README.md')
    expect(own.filter((page) => !linked.includes(page))).toEqual([])
  })

  it('are found broken when they are', () => {
    const text = '# One\n## One\n[a](#one-1) [b](#two) [c](nowhere.md) [d](docs/README.md#x) `[e](gone.md)`'
    expect(brokenLinks('README.md', text).map((line) => line.split(': ')[1])).toEqual([
      'no such heading',
      'no such file',
      'no such heading',
    ])
  })
})
