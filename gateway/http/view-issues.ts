/** Finds the views that cannot be compiled. A gateway compiles a view when its page is first shown, so `npm run check` asks. */
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Edition } from '../products/edition.ts'
import { type Issue, pointerOf } from '../validation/issue.ts'
import { compileView } from './render.ts'

/** Compiles the view of each page of an edition, and lists those that have an error. */
export function viewIssues({ catalog, viewDirs }: Pick<Edition, 'catalog' | 'viewDirs'>, viewDir: string): Issue[] {
  return catalog.products.flatMap(({ file, operations }) =>
    operations.flatMap(({ id, view }): Issue[] => {
      const path = [viewDir, ...viewDirs].map((folder) => join(folder, `${view}.pug`)).find((each) => existsSync(each))
      if (view === null || path === undefined) return []
      const fault = faultOf(path, viewDir)
      return fault === null
        ? []
        : [{ file, pointer: pointerOf('operations', id, 'view'), rule: 'view', message: fault }]
    }),
  )
}

/** An error of Pug. `msg` is the message without the lines of code around it. */
interface PugError {
  readonly msg?: string
  readonly message: string
  readonly filename?: string
  readonly line?: number
}

function faultOf(path: string, viewDir: string): string | null {
  try {
    compileView(path, viewDir)
    return null
  } catch (error) {
    const { msg, message, filename = path, line } = error as PugError
    const place = line === undefined ? basename(filename) : `${basename(filename)}:${line}`
    return `The view has an error: ${msg ?? message.split('\n')[0]} (${place}). A browser would get JSON instead of the page.`
  }
}
