/** Checks that links to a part of a page lead to one. */
import type { Client } from './client.ts'
import type { Findings } from './findings.ts'

/** Checks the links that have an anchor, such as https://a.example/docs#mcp. Only pages of HTML have parts to look for. */
export async function checkAnchors(links: readonly string[], client: Client, findings: Findings): Promise<void> {
  const pages = new Map<string, string[]>()
  for (const link of links) {
    const [page = '', anchor = ''] = link.split('#')
    if (anchor !== '') pages.set(page, [...(pages.get(page) ?? []), anchor])
  }
  await client.forEach([...pages], async ([page, anchors]) => {
    const { status, headers, text } = await client.request(page, { headers: { accept: 'text/html' } })
    // A dead link is a fault of its own.
    if (status !== 200 || !/^text\/html\b/i.test(headers.get('content-type') ?? '')) return
    const ids = new Set(Array.from(text.matchAll(/\sid=["']?([^"'\s>]+)/g), ([, id]) => id))
    for (const anchor of anchors)
      if (!ids.has(anchor))
        findings.at(`${page}#${anchor}`)(
          'anchor',
          'Is linked, but the page has no element with this id.',
          'Fix the link, or give the part of the page that it means the id.',
        )
  })
}
