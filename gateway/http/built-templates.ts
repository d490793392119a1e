/**
 * The views that `npm run build` has compiled. Pug takes tens of milliseconds for a page, in which its process answers
 * nobody, and after a start that would come with the first visit to each page.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { compileTemplate } from 'pug'
import { GATEWAY_ROOT } from '../config/project-root.ts'

/** A view that the build has compiled. */
export interface BuiltTemplate {
  readonly template: compileTemplate
  /** The digest of each text that it was compiled from, by its path below the folder of views. */
  readonly digests: Readonly<Record<string, string>>
}

/** Beside the built gateway: a CommonJS module for each view, with its path below the folder of views. */
const BUILT_TEMPLATES = join(GATEWAY_ROOT, 'templates')

/** Returns what the build has made of a view, by its path below the folder of views; null if it has made nothing. */
export function builtTemplate(view: string, folder = BUILT_TEMPLATES): BuiltTemplate | null {
  const file = join(folder, fileOfTemplate(view))
  return existsSync(file) ? (createRequire(import.meta.url)(file) as BuiltTemplate) : null
}

/** The name of the module of a view. */
export const fileOfTemplate = (view: string): string => `${view}.cjs`

/** The digest by which a text is recognised. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64')
