/** Makes the data that tests of the own catalog start from, in the folder of the run. `npm test` runs it beside the first tests. */
import { firstStart } from './first-start.ts'

await firstStart()
