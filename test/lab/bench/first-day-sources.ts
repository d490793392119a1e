/** The sources of `npm run lab -- first-day`, in a process of their own, so that their work is not counted. */
import { openScriptedSources, type ScriptOptions } from '../../plugins/potus/first-day/scripted-sources.ts'

const { settings } = await openScriptedSources(JSON.parse(process.argv[2] ?? '') as ScriptOptions)
process.send?.(settings)
