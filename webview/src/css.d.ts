// esbuild gathers imported style sheets into dist/panels.css.
declare module "*.css";
