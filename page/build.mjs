// Builds the page: TypeScript and CSS of this folder become page.js, page.css and index.html of wavedash/web/static.
// `node build.mjs --out FOLDER` builds elsewhere; `--watch` keeps building. The same input gives the same bytes.
import { build, context } from "esbuild";
import { copyFile, mkdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { three } from "./three.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const argument = process.argv.indexOf("--out");
const out = argument > 0 ? resolve(process.argv[argument + 1]) : resolve(here, "../wavedash/web/static");

const options = {
  absWorkingDir: here,
  entryPoints: { page: "src/main.ts" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: ["es2020", "chrome100", "firefox113", "safari16.4"],
  charset: "utf8",
  legalComments: "none",
  // The licences of three and uPlot ask that their notices stay with copies.
  banner: { js: "/* Wavedash's page. Contains three.js (MIT, three.js authors) and uPlot (MIT, Leon Sorokin). */" },
  plugins: [three],
  logLevel: "warning",
};

await mkdir(out, { recursive: true });
for (const name of ["index.html", "icon.svg"]) await copyFile(join(here, name), join(out, name));
if (process.argv.includes("--watch")) {
  await (await context(options)).watch();
} else {
  await build(options);
  let sum = 0;
  for (const name of ["index.html", "icon.svg", "page.css", "page.js"]) {
    const bytes = await readFile(join(out, name));
    const packed = gzipSync(bytes, { level: 9 }).length;
    sum += packed;
    console.log(`${name.padEnd(11)} ${String(bytes.length).padStart(8)} bytes, ${String(packed).padStart(7)} gzipped`);
  }
  console.log(`together ${sum} bytes gzipped`);
}
