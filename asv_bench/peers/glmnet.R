# Rscript glmnet.R FOLDER: fits the problem written in FOLDER, times it, writes the weights there.
suppressPackageStartupMessages(library(glmnet))
folder <- commandArgs(trailingOnly = TRUE)[1]
at <- function(name) file.path(folder, name)
options <- read.csv(at("options.csv"))
x <- as(readMM(at("x.mtx")), "CsparseMatrix")
y <- factor(scan(at("y.txt"), quiet = TRUE))

# glmnet is meant for paths: the wanted penalty is the last of a geometric path from its own largest one.
fit <- function() {
  share <- prop.table(table(y))
  residual <- sapply(levels(y), function(level) (y == level) - (if (options$intercept) share[level] else 1 / nlevels(y)))
  largest <- max(abs(crossprod(x, residual))) / nrow(x) / options$alpha
  path <- exp(seq(log(max(largest, options$penalty)), log(options$penalty), length.out = options$n_path))
  glmnet(x, y, family = "multinomial", alpha = options$alpha, lambda = path, standardize = FALSE, intercept = options$intercept == 1,
         thresh = options$thresh, maxit = 1e8, type.multinomial = "ungrouped")
}
seconds <- sum(system.time(model <- fit())[c("user.self", "sys.self")])
last <- length(model$lambda)
coef <- do.call(cbind, lapply(model$beta, function(beta) beta[, last]))
write.table(t(coef), at("coef.txt"), row.names = FALSE, col.names = FALSE)
writeLines(format(model$a0[, last], digits = 17), at("intercept.txt"))
writeLines(format(c(seconds, model$lambda[last] / options$penalty), digits = 17), at("seconds.txt"))
